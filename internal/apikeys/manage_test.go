package apikeys

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCreateRefusesWhatCannotBeAnOwner(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		for name, change := range map[string]func(*NewKey){
			"NoIssuer":     func(n *NewKey) { n.Issuer = "" },
			"NoSubject":    func(n *NewKey) { n.Subject = "" },
			"LongSubject":  func(n *NewKey) { n.Subject = strings.Repeat("s", 256) },
			"LineBreak":    func(n *NewKey) { n.Subject = "a\nb" },
			"NobodyMakes":  func(n *NewKey) { n.By = "" },
			"LongNote":     func(n *NewKey) { n.Note = strings.Repeat("n", maxNote+1) },
			"NoteIsNoText": func(n *NewKey) { n.Note = "\xff" },
			"NULInANote":   func(n *NewKey) { n.Note = "a\x00b" },
			"Expired":      func(n *NewKey) { n.Expires = time.Now() },
		} {
			n := NewKey{Issuer: "i", Subject: "s", By: "tester"}
			change(&n)
			key, _, err := Create(t.Context(), b.client, n)
			require.ErrorIs(t, err, ErrInvalid, name)
			require.Empty(t, key)
		}
	})
}

func TestRevokeIsForGoodAndOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		_, row := b.create(t)
		again, err := Revoke(t.Context(), b.client, row.ID, "first")
		require.NoError(t, err)
		require.False(t, again)
		at := b.row(t, row.ID).RevokedAt
		again, err = Revoke(t.Context(), b.client, row.ID, "second")
		require.NoError(t, err)
		require.True(t, again)
		require.Equal(t, at, b.row(t, row.ID).RevokedAt)
		require.Equal(t, "first", *b.row(t, row.ID).RevokedBy)
		_, err = Revoke(t.Context(), b.client, "key_none", "tester")
		require.ErrorIs(t, err, ErrNotFound)
	})
}

func TestListShowsEverythingButTheKey(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, b *testBundle) {
		var keys []string
		active, _ := b.create(t, func(n *NewKey) { n.Note = "the nightly\njob" })
		operator, _ := b.create(t, func(n *NewKey) { n.Operator, n.Expires = true, time.Now().Add(time.Hour) })
		revoked, row := b.create(t)
		keys = append(keys, active, operator, revoked)
		_, err := Revoke(t.Context(), b.client, row.ID, "tester")
		require.NoError(t, err)
		var table, text bytes.Buffer
		require.NoError(t, List(t.Context(), b.client, Table, &table))
		require.Len(t, strings.Split(strings.TrimSpace(table.String()), "\n"), 4, "a note is one line")
		require.Contains(t, table.String(), `"the nightly\njob"`)
		require.NoError(t, List(t.Context(), b.client, JSON, &text))
		var list struct {
			Format int
			Keys   []Item
		}
		require.NoError(t, json.Unmarshal(text.Bytes(), &list))
		require.Equal(t, 1, list.Format)
		var states []string
		for i, k := range list.Keys {
			states = append(states, k.State)
			require.NotContains(t, table.String()+text.String(), keys[i][30:])
		}
		require.Equal(t, []string{Active, Active, Revoked}, states)
		require.True(t, list.Keys[1].Operator)
		require.Equal(t, Expired, Describe(b.row(t, list.Keys[1].ID), time.Now().Add(2*time.Hour)).State)
		require.Error(t, List(t.Context(), b.client, "xml", &text))
	})
}
