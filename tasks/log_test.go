package tasks

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestLogWritesOneRecordARun(t *testing.T) {
	var out bytes.Buffer
	task := must(t)(NewLog(Log{Level: slog.LevelWarn, Logger: logTo(&out)}))
	if err := task.Handle(t.Context(), aJob()); err != nil {
		t.Fatal(err)
	}
	want := `level=WARN msg=fired id=order:42 task=cancel-order run_id=run-7 attempt=3 due=2026-12-01T09:00:00.005Z reason=timer payload="{\"n\":1}"` + "\n"
	if out.String() != want {
		t.Errorf("got  %s\nwant %s", out.String(), want)
	}
}

func TestLogBoundsIDAndPayloadAndSaysThatTheyAreCut(t *testing.T) {
	var out bytes.Buffer
	task := must(t)(NewLog(Log{Logger: logTo(&out)}))
	job := aJob()
	job.ID, job.Payload = strings.Repeat("i", 512), []byte(strings.Repeat("é", 1<<19))
	if err := task.Handle(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	wantContains(t, out.String(), "id_cut_from=512", "payload_cut_from=1048576", strings.Repeat("é", 128), "level=INFO")
	wantWithout(t, out.String(), strings.Repeat("é", 129), strings.Repeat("i", 257))
}

func TestLogKeepsHostileIDsOnOneLine(t *testing.T) {
	for _, id := range hostileIDs {
		var out bytes.Buffer
		task := must(t)(NewLog(Log{Logger: logTo(&out)}))
		job := aJob()
		job.ID, job.Payload = id, []byte(id)
		if err := task.Handle(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(out.String(), "\n"); lines != 1 || strings.ContainsAny(out.String(), "\x00\x1b\r") {
			t.Errorf("id %q is logged as %q", id, out.String())
		}
	}
}

func TestLogBelowTheLoggersLevelWritesNothing(t *testing.T) {
	var out bytes.Buffer
	task := must(t)(NewLog(Log{Level: slog.LevelDebug - 4, Logger: logTo(&out)}))
	if err := task.Handle(t.Context(), aJob()); err != nil || out.Len() > 0 {
		t.Errorf("err %v, output %q", err, out.String())
	}
}
