// franz-go's clients, driven from another process: each line of standard input is a call, a JSON object with its name
// and arguments, and each is answered by one line, {"result": ...} or {"error": "Error", "message": ...}.
//
// What is opened (a producer, a member of a group, a member of a share group) is called by the number that opening it
// returned. Settings have Kafka's names. Bytes are in base64. Ends with its input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 80 * time.Second // less than a scenario waits

type partition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

type header struct {
	Name  string
	Value []byte
}

type record struct {
	Partition *int32   `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp *int64   `json:"timestamp"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
	Delivery  int32    `json:"delivery"`
}

type sent struct {
	Partition int32 `json:"partition"`
	Offset    int64 `json:"offset"`
}

type rebalances struct {
	Assigned []partition `json:"assigned"`
	Revoked  []partition `json:"revoked"`
}

type call struct {
	Call     string            `json:"call"`
	On       int               `json:"on"`
	Settings map[string]string `json:"settings"`
	Topic    string            `json:"topic"`
	Topics   []string          `json:"topics"`
	Pattern  string            `json:"pattern"`
	Records  []record          `json:"records"`
	Ack      string            `json:"ack"`
	Ms       int               `json:"ms"`
}

// A header is a pair, as in the calls of the other libraries.
func (h header) MarshalJSON() ([]byte, error) { return json.Marshal([]any{h.Name, h.Value}) }

func (h *header) UnmarshalJSON(data []byte) error {
	var pair [2]json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if err := json.Unmarshal(pair[0], &h.Name); err != nil {
		return err
	}
	return json.Unmarshal(pair[1], &h.Value)
}

// client is a producer, or a member of a group. A member begins when it subscribes: kgo has no client without topics.
type client struct {
	options []kgo.Opt
	kafka   *kgo.Client
	commits bool

	lock  sync.Mutex // of what callbacks change
	owned map[partition]bool
	told  rebalances
}

func main() {
	var opened []*client
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var asked call
		answer := map[string]any{}
		err := json.Unmarshal(lines.Bytes(), &asked)
		if err == nil {
			answer["result"], err = perform(&asked, &opened)
		}
		if err != nil {
			answer = map[string]any{"error": "Error", "message": err.Error()}
		}
		line, _ := json.Marshal(answer)
		fmt.Println(string(line))
	}
}

func perform(asked *call, opened *[]*client) (any, error) {
	switch asked.Call {
	case "open_producer", "open_group_consumer", "open_share_consumer":
		made, err := open(asked)
		if err != nil {
			return nil, err
		}
		*opened = append(*opened, made)
		return len(*opened) - 1, nil
	}
	on := (*opened)[asked.On]
	switch asked.Call {
	case "send":
		return on.send(asked.Topic, asked.Records)
	case "subscribe":
		return nil, on.start(kgo.ConsumeTopics(asked.Topics...))
	case "subscribe_pattern":
		return nil, on.start(kgo.ConsumeTopics(asked.Pattern), kgo.ConsumeRegex())
	case "poll":
		return on.poll(time.Duration(asked.Ms)*time.Millisecond, asked.Ack)
	case "assignment":
		return on.assignment(), nil
	case "rebalances":
		return on.rebalances(), nil
	case "close":
		return nil, on.close()
	}
	return nil, fmt.Errorf("there is no call %q", asked.Call)
}

func open(asked *call) (*client, error) {
	made := &client{
		// By default kgo waits 5 s before it asks again who leads a partition.
		options: []kgo.Opt{kgo.MetadataMinAge(100 * time.Millisecond)},
		owned:   map[partition]bool{}, told: rebalances{[]partition{}, []partition{}},
	}
	for name, value := range asked.Settings {
		options, err := option(name, value, asked.Call)
		if err != nil {
			return nil, err
		}
		made.options = append(made.options, options...)
	}
	switch asked.Call {
	case "open_producer":
		return made, made.start(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	case "open_group_consumer":
		made.commits = true
		made.options = append(made.options,
			kgo.OnPartitionsAssigned(made.assigned), kgo.OnPartitionsRevoked(made.revoked), kgo.OnPartitionsLost(made.revoked))
	}
	return made, nil
}

// option has what a setting of Kafka's is in kgo.
func option(name, value, opening string) ([]kgo.Opt, error) {
	number, _ := strconv.Atoi(value)
	ms := time.Duration(number) * time.Millisecond
	switch name {
	case "bootstrap.servers":
		return []kgo.Opt{kgo.SeedBrokers(strings.Split(value, ",")...)}, nil
	case "group.id":
		if opening == "open_share_consumer" {
			return []kgo.Opt{kgo.ShareGroup(value)}, nil
		}
		return []kgo.Opt{kgo.ConsumerGroup(value)}, nil
	case "group.instance.id":
		return []kgo.Opt{kgo.InstanceID(value)}, nil
	case "fetch.max.wait.ms":
		return []kgo.Opt{kgo.FetchMaxWait(ms)}, nil
	case "heartbeat.interval.ms":
		return []kgo.Opt{kgo.HeartbeatInterval(ms)}, nil
	case "session.timeout.ms":
		return []kgo.Opt{kgo.SessionTimeout(ms)}, nil
	}
	switch name + "=" + value {
	case "auto.offset.reset=earliest":
		return []kgo.Opt{kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}, nil
	case "group.protocol=consumer":
		return []kgo.Opt{kgo.ServerSideBalancer()}, nil
	case "partition.assignment.strategy=range":
		return []kgo.Opt{kgo.Balancers(kgo.RangeBalancer())}, nil
	case "partition.assignment.strategy=roundrobin":
		return []kgo.Opt{kgo.Balancers(kgo.RoundRobinBalancer())}, nil
	case "partition.assignment.strategy=sticky":
		return []kgo.Opt{kgo.Balancers(kgo.StickyBalancer())}, nil
	case "partition.assignment.strategy=cooperative-sticky":
		return []kgo.Opt{kgo.Balancers(kgo.CooperativeStickyBalancer())}, nil
	}
	return nil, fmt.Errorf("kgo's option for %s=%s is not known here", name, value)
}

func (c *client) start(more ...kgo.Opt) error {
	if c.kafka != nil {
		return fmt.Errorf("it is subscribed already")
	}
	var err error
	c.kafka, err = kgo.NewClient(append(c.options, more...)...)
	return err
}

func (c *client) send(topic string, records []record) ([]sent, error) {
	var sending []*kgo.Record
	for _, each := range records {
		made := &kgo.Record{Topic: topic, Key: each.Key, Value: each.Value}
		if each.Partition != nil {
			made.Partition = *each.Partition
		}
		if each.Timestamp != nil {
			made.Timestamp = time.UnixMilli(*each.Timestamp)
		}
		for _, pair := range each.Headers {
			made.Headers = append(made.Headers, kgo.RecordHeader{Key: pair.Name, Value: pair.Value})
		}
		sending = append(sending, made)
	}
	ending, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.kafka.ProduceSync(ending, sending...).FirstErr(); err != nil {
		return nil, err
	}
	places := []sent{}
	for _, each := range sending {
		places = append(places, sent{each.Partition, each.Offset})
	}
	return places, nil
}

// poll has what arrives. A member of a share group says of every record what becomes of it, and waits until it is said.
func (c *client) poll(timeout time.Duration, ack string) ([]record, error) {
	ending, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	fetched := c.kafka.PollFetches(ending)
	found := []record{}
	for _, each := range fetched.Records() {
		timestamp := each.Timestamp.UnixMilli()
		read := record{
			Partition: &each.Partition, Offset: each.Offset, Timestamp: &timestamp, Key: each.Key, Value: each.Value,
			Headers: []header{}, Delivery: each.DeliveryCount(),
		}
		for _, pair := range each.Headers {
			read.Headers = append(read.Headers, header{pair.Key, pair.Value})
		}
		found = append(found, read)
	}
	if ack == "" || len(found) == 0 {
		return found, nil
	}
	status, known := map[string]kgo.AckStatus{
		"accept": kgo.AckAccept, "release": kgo.AckRelease, "reject": kgo.AckReject,
	}[ack]
	if !known {
		return nil, fmt.Errorf("there is no acknowledgement %q", ack)
	}
	c.kafka.MarkAcks(status, fetched.Records()...)
	said, cancelled := context.WithTimeout(context.Background(), patience)
	defer cancelled()
	return found, c.kafka.FlushAcks(said)
}

func (c *client) assigned(_ context.Context, _ *kgo.Client, given map[string][]int32) {
	c.change(given, &c.told.Assigned, true)
}

func (c *client) revoked(_ context.Context, _ *kgo.Client, taken map[string][]int32) {
	c.change(taken, &c.told.Revoked, false)
}

func (c *client) change(partitions map[string][]int32, noted *[]partition, owned bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for topic, numbers := range partitions {
		for _, number := range numbers {
			each := partition{topic, number}
			*noted = append(*noted, each)
			if owned {
				c.owned[each] = true
			} else {
				delete(c.owned, each)
			}
		}
	}
}

func (c *client) assignment() []partition {
	c.lock.Lock()
	defer c.lock.Unlock()
	found := []partition{}
	for each := range c.owned {
		found = append(found, each)
	}
	return found
}

func (c *client) rebalances() rebalances {
	c.lock.Lock()
	defer c.lock.Unlock()
	told := c.told
	c.told = rebalances{[]partition{}, []partition{}}
	return told
}

func (c *client) close() error {
	if c.kafka == nil {
		return nil
	}
	defer c.kafka.Close()
	if !c.commits {
		return nil
	}
	ending, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.kafka.CommitUncommittedOffsets(ending)
}
