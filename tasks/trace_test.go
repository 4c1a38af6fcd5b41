package tasks

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/keyfuse-io/keyfuse/registry"
)

func TestATraceIsHandedOn(t *testing.T) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, job := range []registry.Job{{ID: "a", Task: "t", Trace: trace}, {ID: "a", Task: "t"}} {
		header := http.Header{}
		tell(header, job)
		if got := header.Get("Traceparent"); got != job.Trace {
			t.Errorf("header: %q, want %q", got, job.Trace)
		}
		if got := slices.Contains(jobEnv(job), "TRACEPARENT="+trace); got != (job.Trace != "") {
			t.Errorf("environment: %q", jobEnv(job))
		}
		doc, err := document(job)
		if err != nil || strings.Contains(string(doc), `"traceparent":"`+trace+`"`) != (job.Trace != "") {
			t.Errorf("document: %s, %v", doc, err)
		}
	}
	if _, err := ownHeader(map[string]string{"traceparent": "x"}); err == nil {
		t.Error("it can be configured, and would be overwritten")
	}
}
