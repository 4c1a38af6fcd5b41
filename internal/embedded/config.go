package embedded

import (
	"fmt"
	"slices"
	"strings"
)

// notifyParameter is the only parameter that can be changed.
const notifyParameter = "notify-keyspace-events"

// parameters are what CONFIG GET knows, sorted.
func (s *Server) parameters() [][2]string {
	port := "0"
	if _, p, ok := strings.Cut(s.Addr(), ":"); ok {
		port = p
	}
	return [][2]string{
		{"appendonly", "no"},
		{"databases", fmt.Sprint(databases)},
		{"hz", "500"},
		{"maxmemory", "0"},
		{"maxmemory-policy", "noeviction"},
		{notifyParameter, s.notify.String()},
		{"port", port},
		{"save", ""},
	}
}

// CONFIG GET pattern ..., CONFIG SET name value ..., CONFIG RESETSTAT
func (s *Server) config(c *call) {
	if !c.arity(1, -1) {
		return
	}
	switch sub := strings.ToUpper(c.args[0]); {
	case sub == "GET" && len(c.args) > 1:
		s.configGet(c, c.args[1:])
	case sub == "SET" && len(c.args) > 2:
		s.configSet(c, c.args[1:])
	case sub == "GET" || sub == "SET":
		c.peer.WriteError(fmt.Sprintf("ERR wrong number of arguments for 'config|%s' command", strings.ToLower(sub)))
	case sub == "RESETSTAT" && len(c.args) == 1:
		c.peer.WriteOK()
	case sub == "REWRITE" && len(c.args) == 1:
		c.peer.WriteError("ERR The server is running without a config file")
	default:
		c.peer.WriteError(fmt.Sprintf("ERR unknown subcommand '%s'. Try CONFIG HELP.", c.args[0]))
	}
}

func (s *Server) configGet(c *call, patterns []string) {
	found := slices.DeleteFunc(s.parameters(), func(parameter [2]string) bool {
		return !slices.ContainsFunc(patterns, func(pattern string) bool {
			return glob(strings.ToLower(pattern), parameter[0])
		})
	})
	c.peer.WriteMapLen(len(found))
	for _, parameter := range found {
		c.peer.WriteBulk(parameter[0])
		c.peer.WriteBulk(parameter[1])
	}
}

// configSet changes all or, if anything is wrong, nothing.
func (s *Server) configSet(c *call, args []string) {
	if len(args)%2 != 0 {
		c.peer.WriteError(errSyntax)
		return
	}
	flags := s.notify
	for pair := range slices.Chunk(args, 2) {
		name := strings.ToLower(pair[0])
		i := slices.IndexFunc(s.parameters(), func(parameter [2]string) bool { return parameter[0] == name })
		switch {
		case i < 0:
			c.peer.WriteError(fmt.Sprintf("ERR Unknown option or number of arguments for CONFIG SET - '%s'", pair[0]))
			return
		case name == notifyParameter:
			var ok bool
			if flags, ok = parseNotify(pair[1]); !ok {
				c.configRefuse(name, "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
				return
			}
		case s.parameters()[i][1] != pair[1]:
			c.configRefuse(name, "the embedded server cannot change it; use a real redis for that")
			return
		}
	}
	s.notify = flags
	c.peer.WriteOK()
}

func (c *call) configRefuse(name, why string) {
	c.peer.WriteError(fmt.Sprintf("ERR CONFIG SET failed (possibly related to argument '%s') - %s", name, why))
}
