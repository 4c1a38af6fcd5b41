// Package faults breaks what Keyfuse runs on, while it runs, and checks that it
// keeps its promises all the same. It has no code of its own: these are tests.
//
// A run has real redis-server processes, real daemon processes (this test's own
// binary, started anew), a load, and faults that are drawn from a seed:
//
//	load ──────► Redis under test ◄────── daemons
//	  │               ▲    ▲                 │ one line for each start, end and
//	  │ before and    │    └── faults ──┐    │ outcome of a handler, by write(2)
//	  ▼ after each call                 │    ▼
//	 book ◄──────────────────────────── harness reads the lines
//	  └─► check ─► report
//
// The book knows of each job what was asked for and what was acknowledged, and
// of each handler when it started and how it ended. The check then finds
//
//   - what is lost: acknowledged, not cancelled, and never run to its end;
//   - what is early: started before the due time that counted then;
//   - what ran though it was cancelled in time, or moved, or replaced;
//   - each handler that started twice for one firing, without a cause that is
//     known: a killed daemon, a lost lease, a failure on purpose;
//   - counters whose firings do not add up to the hits that were acknowledged;
//   - what is left in Redis when all is over;
//   - how long after each fault everything overdue had run.
//
// A call that got no answer may have happened or not: it is made again until it
// is answered, and what its tries may have done is allowed, but for that only.
//
// Redis runs with appendfsync always, so that what it acknowledged is on disk
// before the answer: a kill -9 may lose nothing, and the check is exact. (With
// everysec Redis may hold a write back for up to 2 s while the disk is busy, and
// a kill then loses what was acknowledged.)
//
// The short form runs with all tests. At length: ./test.sh faults [SEED]. These
// change it, in either form:
//
//	KEYFUSE_FAULT_SEED      of the faults and the load; it is printed
//	KEYFUSE_FAULT_JOBS      how many jobs
//	KEYFUSE_FAULT_FAULTS    how many faults
//	KEYFUSE_FAULT_DAEMONS   how many daemons
//	KEYFUSE_FAULT_LEASE     of the daemons
//	KEYFUSE_FAULT_KINDS     only these kinds of fault, with commas
//	KEYFUSE_FAULT_DIR       where records and logs stay; without it, only those
//	                        of a run that failed do
package faults
