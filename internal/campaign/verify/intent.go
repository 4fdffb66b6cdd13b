package verify

import "slices"

// intent is what a createJob call asked for, as far as campaigns vary it.
type intent struct{ task, target, input string }

func asked(c *Call) intent { return intent{c.Task, c.Target, canonical(c.Input)} }

// of reports whether a job's row can be this intent's. A target or task that was not asked for by name is the server's.
func (i intent) of(row *Job) bool {
	return (i.task == "" || i.task == row.Task) && (i.target == "" || i.target == row.Target) && i.input == canonical(row.Input)
}

// oneIntentPerKey is I2: a key's job is returned for its own intent alone, and a conflict is said of other intents alone.
func oneIntentPerKey(j *judge) {
	for _, k := range j.keys {
		if len(k.rows) == 1 { // I1 tells the rest
			j.oneIntent(k, k.rows[0])
		}
	}
}

func (j *judge) oneIntent(k *keyUse, row *Job) {
	var matched, stored []intent // that were told that the job is theirs; that the job may have been made from
	wasAsked := false
	for _, c := range k.creates {
		if c.Answered() && c.Type != created {
			continue
		}
		i := asked(c)
		fits := i.of(row)
		wasAsked = wasAsked || fits
		if c.Type == created {
			matched = append(matched, i)
			if !fits {
				j.broken(row.ID, "createJob of %s for key %q asked for (%s, %q, %.100s) and was answered with a job of (%s, %q, %.100s)",
					k.owner, k.key, c.Task, c.Target, c.Input, row.Task, row.Target, row.Input)
			} else if i != matched[0] {
				j.broken(row.ID, "two intents of key %q of %s were both told that the job is theirs: %v and %v", k.key, k.owner, matched[0], i)
			}
		} else if fits {
			stored = append(stored, i)
		}
	}
	if !wasAsked {
		j.broken(row.ID, "nobody asked for the job of key %q of %s as it is: %s, %s, %.100s", k.key, k.owner, row.Task, row.Target, row.Input)
	}
	if len(matched) > 0 {
		stored = matched[:1]
	}
	for _, c := range k.creates {
		i := asked(c)
		if c.Type == conflict && !slices.ContainsFunc(stored, func(s intent) bool { return s != i }) {
			j.broken(row.ID, "createJob of %s for key %q asked for what the job is, and was told of a conflict", k.owner, k.key)
		}
		if c.Type == "InvalidInput" && slices.Contains(matched, i) {
			j.broken(row.ID, "createJob of %s for key %q was told that the job's own intent is invalid", k.owner, k.key)
		}
	}
}
