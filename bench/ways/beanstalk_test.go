package ways

import "testing"

func TestBeanstalkWays(t *testing.T) { onServers(t, beanstalkWays()) }
