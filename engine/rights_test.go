package engine_test

import (
	"context"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/keyfuse-io/keyfuse/client"
)

// user is a user of Redis.
type user struct{ name, password string }

// leastRights makes nodes, and what the test schedules, use a user with no other
// rights than docs/operations.md says.
func (w *world) leastRights() {
	w.Helper()
	rule := w.documentedRule()
	all := w.rdb
	setUser := func(ctx context.Context, rdb *redis.Client) error { return rdb.Do(ctx, rule...).Err() }
	if w.space.IsCluster() {
		w.servers(setUser)
	} else if err := setUser(w.Context(), all.(*redis.Client)); err != nil {
		w.Fatal(err)
	}
	w.user = user{rule[2].(string), strings.TrimPrefix(rule[4].(string), ">")}
	w.connect(client.Config{})
	w.rdb = all // other clients may do more
}

// documentedRule is the command that gives those rights: the first of the document
// is for one Redis, the second for a cluster.
func (w *world) documentedRule() []any {
	w.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		w.Fatal(err)
	}
	var rules []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "    ACL SETUSER keyfuse on >") {
			rules = append(rules, strings.TrimSpace(line))
		}
	}
	if len(rules) != 2 {
		w.Fatalf("the document has %d rules", len(rules))
	}
	rule := rules[0]
	if w.space.IsCluster() {
		rule = rules[1]
	}
	var words []any
	for word := range strings.FieldsSeq(rule) {
		words = append(words, word)
	}
	return words
}
