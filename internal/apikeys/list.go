package apikeys

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/docket-gateway/docket/ent"
	"github.com/docket-gateway/docket/ent/apikey"
	"github.com/docket-gateway/docket/internal/viewer"
)

// The formats of a list.
const (
	Table = "table"
	JSON  = "json"
)

// States of a key in a list.
const (
	Active  = "ACTIVE"
	Expired = "EXPIRED"
	Revoked = "REVOKED"
)

// Item is a key in a list or just made. It holds nothing that the key could be told from.
type Item struct {
	ID         string     `json:"id"`
	State      string     `json:"state"`
	Issuer     string     `json:"issuer"`
	Subject    string     `json:"subject"`
	Operator   bool       `json:"operator"`
	Note       string     `json:"note"`
	CreatedBy  string     `json:"createdBy"`
	CreatedAt  time.Time  `json:"createdAt"`
	ExpiresAt  *time.Time `json:"expiresAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"` // to DefaultUsedEvery
	RevokedAt  *time.Time `json:"revokedAt"`
	RevokedBy  *string    `json:"revokedBy"`
}

// Describe returns what may be shown of a key.
func Describe(row *ent.APIKey, now time.Time) Item {
	state := Active
	switch {
	case row.RevokedAt != nil:
		state = Revoked
	case row.ExpiresAt != nil && !now.Before(*row.ExpiresAt):
		state = Expired
	}
	return Item{
		ID: row.ID, State: state, Issuer: row.Issuer, Subject: row.Subject, Operator: row.Operator, Note: row.Note, CreatedBy: row.CreatedBy,
		CreatedAt: row.CreatedAt.UTC(), ExpiresAt: row.ExpiresAt, LastUsedAt: row.LastUsedAt, RevokedAt: row.RevokedAt, RevokedBy: row.RevokedBy,
	}
}

// List writes all keys, oldest first, as Table or JSON.
func List(ctx context.Context, c *ent.Client, format string, out io.Writer) error {
	if format != Table && format != JSON {
		return fmt.Errorf("the format %q is not known", format)
	}
	rows, err := c.APIKey.Query().Order(apikey.ByCreatedAt(), apikey.ByID()).All(viewer.NewSystemContext(ctx))
	if err != nil {
		return fmt.Errorf("read the API keys: %w", err)
	}
	now, items := time.Now(), make([]Item, 0, len(rows))
	for _, row := range rows {
		items = append(items, Describe(row, now))
	}
	if format == JSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(struct {
			Format int    `json:"format"`
			Keys   []Item `json:"keys"`
		}{1, items}); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "KEY\tSTATE\tROLE\tISSUER\tSUBJECT\tCREATED\tEXPIRES\tLAST USED\tNOTE") // Flush tells of errors
	for _, i := range items {
		role := "owner"
		if i.Operator {
			role = "operator"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%q\n", i.ID, i.State, role, i.Issuer, i.Subject,
			stamp(&i.CreatedAt), stamp(i.ExpiresAt), stamp(i.LastUsedAt), i.Note)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func stamp(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
