package ways

import (
	"context"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/keyfuse-io/keyfuse/bench/way"
)

// rabbitWays let messages expire in a queue that nobody consumes, from which RabbitMQ
// moves them (by its dead-letter exchange) to the queue of the workers. RabbitMQ knows
// delays, not due times, so a job's delay is what is left when it is published.
//
// Queues are durable and classic (of version 2), messages persistent, and RabbitMQ
// confirms each.
func rabbitWays() []way.Way {
	return []way.Way{
		{
			Name: "rabbitmq-queue-ttl",
			What: fmt.Sprintf("RabbitMQ: a delay queue (x-message-ttl, dead-letter exchange) for each delay in steps of %s, "+
				"or of %s from %s on, rounded up: a job is never early, but as late as that; persistent, confirmed; prefetch %d",
				rabbitStep, rabbitFarStep, rabbitFar, rabbitPrefetch),
			Needs:    []string{"rabbitmq"},
			OneDelay: true,
			Open:     rabbitOpener(rabbitByQueue),
		},
		{
			Name: "rabbitmq-message-ttl",
			What: fmt.Sprintf("RabbitMQ: one delay queue with an expiration in each message, and a dead-letter exchange; "+
				"a job waits for those before it that are due later; persistent, confirmed; prefetch %d", rabbitPrefetch),
			Needs:   []string{"rabbitmq"},
			InOrder: true,
			Open:    rabbitOpener(rabbitByMessage),
		},
	}
}

const (
	rabbitQueue = "jobs"       // that of the workers
	rabbitDelay = "jobs.delay" // all delays, or the beginning of each one's name

	// rabbitStep is coarse enough for the queues to be some hundreds where jobs are
	// due within half a minute: a queue costs RabbitMQ a process and a transaction.
	rabbitStep = 100 * time.Millisecond
	// rabbitFar is the delay from which on the step is rabbitFarStep: queues for hours
	// would else be thousands. A burst, which is scheduled within a minute, is nearer.
	rabbitFar     = 2 * time.Minute
	rabbitFarStep = time.Minute
	// rabbitPrefetch is within the 100 to 300 that RabbitMQ's documentation advises.
	rabbitPrefetch = 256
	// rabbitBatch is how many messages a bulk publishes before it waits for their
	// confirms.
	rabbitBatch = 5000
	// rabbitVersion is that of the queues' files. 1 is the default of 3.10, and is half
	// as fast here; from 4.0 on there is only 2.
	rabbitVersion = 2
)

// rabbitRoute says where a message with a delay goes: to which queue, which is made
// with the arguments, and with which expiration.
type rabbitRoute func(delay time.Duration) (queue string, args amqp.Table, expiration string)

// rabbitByQueue is a queue for each delay, whose messages all expire after it, in order.
func rabbitByQueue(delay time.Duration) (queue string, args amqp.Table, expiration string) {
	step := rabbitStep
	if delay > rabbitFar {
		step = rabbitFarStep
	}
	millis := ((delay + step - 1) / step * step).Milliseconds()
	args = rabbitDeadLetters()
	args[amqp.QueueMessageTTLArg] = millis
	return fmt.Sprintf("%s.%d", rabbitDelay, millis), args, ""
}

// rabbitByMessage is one queue, whose messages expire at its head only.
func rabbitByMessage(delay time.Duration) (queue string, args amqp.Table, expiration string) {
	millis := (delay + time.Millisecond - 1) / time.Millisecond
	return rabbitDelay, rabbitDeadLetters(), fmt.Sprint(int64(millis))
}

// rabbitDeadLetters sends what expires to the workers, by the default exchange. The
// delay queues have no x-expires: it would delete them with what waits in them.
func rabbitDeadLetters() amqp.Table {
	args := rabbitArgs()
	args["x-dead-letter-exchange"] = ""
	args["x-dead-letter-routing-key"] = rabbitQueue
	return args
}

func rabbitArgs() amqp.Table { return amqp.Table{amqp.QueueVersionArg: rabbitVersion} }

type rabbit struct {
	conn       *amqp.Connection
	route      rabbitRoute
	publishing kept[*amqp.Channel]

	mu   sync.Mutex
	made map[string]bool // delay queues
}

func rabbitOpener(route rabbitRoute) func(context.Context, way.Env) (way.Instance, error) {
	return func(_ context.Context, env way.Env) (way.Instance, error) {
		conn, err := amqp.Dial(env.Addrs["rabbitmq"])
		if err != nil {
			return nil, fmt.Errorf("connecting to RabbitMQ: %w", err)
		}
		r := &rabbit{conn: conn, route: route, made: make(map[string]bool)}
		r.publishing.open = r.publisher
		err = r.publishing.with(func(channel *amqp.Channel) error {
			return r.declare(channel, rabbitQueue, rabbitArgs())
		})
		if err != nil {
			_ = conn.Close() // the first error says why
			return nil, err
		}
		return r, nil
	}
}

// declare makes a durable queue, unless this instance has.
func (r *rabbit) declare(channel *amqp.Channel, queue string, args amqp.Table) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.made[queue] {
		return nil
	}
	const durable, autoDelete, exclusive, noWait = true, false, false, false
	if _, err := channel.QueueDeclare(queue, durable, autoDelete, exclusive, noWait, args); err != nil {
		return fmt.Errorf("declaring the queue %s: %w", queue, err)
	}
	r.made[queue] = true
	return nil
}

// Close closes its channels too.
func (r *rabbit) Close() error { return r.conn.Close() }
