// Command newmigration writes the next versioned migration for both databases: the difference between the migrations
// that there are and the ent schema. Run it from the repository's root:
//
//	go run ./internal/store/newmigration NAME
//
// Read what it writes before you commit it.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"ariga.io/atlas/sql/sqltool"
	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/schema"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/docket-gateway/docket/ent/migrate"
	"github.com/docket-gateway/docket/internal/pgtest"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: newmigration NAME")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, name string) (err error) {
	folder, err := os.MkdirTemp("", "docket-newmigration-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	lite := "file:" + filepath.Join(folder, "dev.db") + "?_pragma=foreign_keys(1)"
	if err := diff(ctx, dialect.SQLite, "sqlite", lite, name); err != nil {
		return err
	}
	cluster, err := pgtest.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	dsn, err := cluster.CreateDatabase(ctx, "dev")
	if err != nil {
		return err
	}
	return diff(ctx, dialect.Postgres, "pgx", dsn, name)
}

func diff(ctx context.Context, dialectName, driver, dsn, name string) (err error) {
	dir, err := sqltool.NewGooseDir(filepath.Join("internal", "store", "migrations", dialectName))
	if err != nil {
		return err
	}
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	m, err := schema.NewMigrate(entsql.OpenDB(dialectName, db),
		schema.WithDir(dir), schema.WithFormatter(sqltool.GooseFormatter), schema.WithDialect(dialectName),
		schema.WithMigrationMode(schema.ModeReplay), schema.WithDropColumn(true), schema.WithDropIndex(true))
	if err != nil {
		return err
	}
	if err := m.NamedDiff(ctx, name, migrate.Tables...); err != nil {
		return fmt.Errorf("%s: %w", dialectName, err)
	}
	return nil
}
