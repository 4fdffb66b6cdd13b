package schema

import (
	"encoding/json"
	"time"

	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/schema/field"
	"go.jetify.com/typeid"
)

// now has the precision that both databases keep.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func createdAt() ent.Field {
	return field.Time("created_at").Default(now).Immutable().
		Annotations(entgql.OrderField("CREATED_AT"))
}

// typeID is a sortable, prefixed identifier: job_01j…, att_01j….
func typeID(prefix string) ent.Field {
	return field.String("id").Immutable().NotEmpty().DefaultFunc(func() string {
		return typeid.Must(typeid.WithPrefix(prefix)).String()
	})
}

// rawJSON keeps the text as it came: PostgreSQL's jsonb would reformat numbers and refuse \u0000, and its json has no
// equality, without which ent cannot follow an edge (it selects DISTINCT).
func rawJSON(name string, immutable, optional bool) ent.Field {
	f := field.JSON(name, json.RawMessage{}).
		SchemaType(map[string]string{dialect.Postgres: "text"}).
		Annotations(entgql.Type("JSON"))
	if immutable {
		f.Immutable()
	}
	if optional {
		f.Optional()
	}
	return f
}
