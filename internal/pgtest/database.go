package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// createDatabase copies template, or PostgreSQL's own if it is empty.
func createDatabase(ctx context.Context, admin, name, template string) error {
	statement := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize()
	if template != "" {
		statement += " TEMPLATE " + pgx.Identifier{template}.Sanitize()
	}
	if err := execute(ctx, admin, statement); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// dropDatabase ends the connections that a test left open, so that one leak does not fail the tests after it.
func dropDatabase(ctx context.Context, admin, name string) error {
	if err := execute(ctx, admin, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

func execute(ctx context.Context, dsn, statement string) (err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

// withDatabase returns dsn, a URL or a list of key=value pairs, with another database.
func withDatabase(dsn, name string) (string, error) {
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		return dsn + " dbname=" + name, nil // the last one counts
	}
	address, err := url.Parse(dsn)
	if err != nil {
		// The error would repeat the address, and with it a password.
		return "", errors.New(EnvAdminDSN + " is not a valid URL")
	}
	query := address.Query()
	for _, key := range []string{"dbname", "database"} { // these would count more than the path
		query.Del(key)
	}
	address.RawQuery = query.Encode()
	address.Path = "/" + name
	return address.String(), nil
}

// Named is the database at a URL under a name that pg_stat_activity shows, so that a test can tell which way a connection came.
func Named(tb testing.TB, dsn, name string) string {
	tb.Helper()
	address, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal("pgtest: the address of the database is not a valid URL") // err would repeat it, and with it a password
	}
	query := address.Query()
	query.Set("application_name", name)
	address.RawQuery = query.Encode()
	return address.String()
}
