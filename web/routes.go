package web

// smallBody is the longest body, in bytes, where little is expected.
const smallBody = 64 << 10

// jobBody is that of a job: payloads in JSON may take six bytes for one.
func (s *Server) jobBody() int64 { return 6*s.cfg.MaxPayload + 8<<10 }

// routes are all of them. openapi.yaml describes those of the API, as a test holds.
func (s *Server) routes() []route {
	return append(s.pages(),
		route{pattern: "POST /v1/jobs", handle: s.schedule, limit: max(maxBulk, s.jobBody()), once: true},
		route{pattern: "GET /v1/jobs", handle: s.listJobs},
		route{pattern: "GET /v1/jobs/{id}", handle: s.showJob},
		route{pattern: "PATCH /v1/jobs/{id}", handle: s.rescheduleJob, limit: smallBody},
		route{pattern: "DELETE /v1/jobs/{id}", handle: s.cancelJob},
		route{pattern: "POST /v1/jobs/{id}/fire", handle: s.fireJob, limit: smallBody, once: true},

		route{pattern: "POST /v1/thresholds", handle: s.defineThreshold, limit: s.jobBody(), once: true},
		route{pattern: "GET /v1/thresholds", handle: s.listThresholds},
		route{pattern: "GET /v1/thresholds/{id}", handle: s.showThreshold},
		route{pattern: "DELETE /v1/thresholds/{id}", handle: s.removeThreshold},
		route{pattern: "POST /v1/thresholds/{id}/hits", handle: s.hit, limit: maxItemBody},

		route{pattern: "GET /v1/tasks", handle: s.listTasks},
		route{pattern: "POST /v1/tasks/{task}/pause", handle: s.pause, limit: smallBody, once: true},
		route{pattern: "POST /v1/tasks/{task}/resume", handle: s.resume, limit: smallBody, once: true},

		route{pattern: "GET /v1/dead", handle: s.listDead},
		route{pattern: "POST /v1/dead/requeue", handle: s.requeueDead, limit: deadBody, once: true, long: true},
		route{pattern: "POST /v1/dead/delete", handle: s.deleteDead, limit: deadBody, once: true, long: true},

		route{pattern: "GET /v1/stats", handle: s.stats},
		route{pattern: "GET /v1/nodes", handle: s.listNodes},
		route{pattern: "GET /v1/openapi.yaml", handle: s.openAPI},

		route{pattern: "GET /livez", handle: s.livez, access: forAll},
		route{pattern: "GET /readyz", handle: s.readyz, access: forAll},
		route{pattern: "GET /metrics", handle: s.metrics},
	)
}
