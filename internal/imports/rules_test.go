// Package imports holds the rules about which of Keyfuse's packages may import
// which, as tests on what `go list -deps` says. It has no code of its own.
//
// A room is a folder at the root or under internal, with all below it. A rule
// about a room's imports counts direct ones, since each imported room has its
// own rule; a rule about what may not be reached counts every way there.
package imports

const (
	module  = "github.com/keyfuse-io/keyfuse"
	goRedis = "github.com/redis/go-redis/v9"

	prometheus = "github.com/prometheus/client_golang"
)

// rooms must each have a package. A new name for one belongs in the rules too,
// or they would hold for nothing.
var rooms = []string{
	"client", "cmd/keyfuse", "engine", "internal/config", "internal/embedded",
	"internal/view", "internal/wire", "registry", "tasks", "web",
}

// allowed says what a room may import directly, besides the standard library
// and itself: other rooms, and modules with all their packages.
var allowed = map[string][]string{
	"registry":      {},
	"internal/wire": {goRedis},
	"client":        {"internal/wire", goRedis},
	"engine":        {"internal/wire", "registry", goRedis},
	"tasks":         {"registry", goRedis},
	"internal/view": {"client", "internal/config", goRedis},
	"web":           {"client", "engine", "registry", "internal/config", "internal/view", prometheus, goRedis},
}

// ownedBy says which rooms alone may import a package or module directly.
var ownedBy = map[string][]string{
	"github.com/spf13/cobra":        {"cmd"},
	"github.com/spf13/pflag":        {"cmd"},
	"gopkg.in/yaml.v3":              {"internal/config"},
	prometheus:                      {"web"},
	"github.com/alicebob/miniredis": {"internal/embedded"},
}

// lean rooms reach none of heavy: they are what applications build in.
var (
	lean  = []string{"client", "engine", "internal/wire", "registry", "tasks"}
	heavy = []string{
		"github.com/alicebob/miniredis",
		"github.com/prometheus",
		"github.com/spf13/cobra",
		"gopkg.in/yaml.v3",
		"testing",
	}
)

// testOnly packages are reached by no package outside tests.
var testOnly = []string{"internal/redistest"}
