// The README's job through Go's grpc-go and generated stubs: client SCHEDULER STORE. Prints one
// line a case; exits with 1 after a failure.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/api/httpbody"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	v1 "millrace/v1"
)

const graph = `{"dsk": {"x": 1, "y": ["inc", "x"], "z": ["add", "x", "y"]}, "targets": ["z"]}`

type peers struct {
	jobs  v1.JobsClient
	store v1.ObjectsClient
}

func body(text string) *httpbody.HttpBody {
	return &httpbody.HttpBody{ContentType: "application/json", Data: []byte(text)}
}

// Collects the results of `next` until the stream ends.
func all[T any](next func() (*T, error)) ([]*T, error) {
	var messages []*T
	for {
		m, err := next()
		if errors.Is(err, io.EOF) {
			return messages, nil
		}
		if err != nil {
			return nil, err
		}
		messages = append(messages, m)
	}
}

func text(bodies []*httpbody.HttpBody) string {
	var all []byte
	for _, b := range bodies {
		all = append(all, b.Data...)
	}
	return strings.TrimSpace(string(all))
}

func submit(ctx context.Context, p peers, pieces ...string) (*v1.SubmitResponse, error) {
	call, err := p.jobs.Submit(ctx)
	if err != nil {
		return nil, err
	}
	for _, piece := range pieces {
		if err := call.Send(&v1.SubmitRequest{Body: body(piece)}); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	return call.CloseAndRecv()
}

func follow(ctx context.Context, p peers, id string) error {
	watch, err := p.jobs.Watch(ctx, &v1.WatchJobRequest{Id: id})
	if err != nil {
		return err
	}
	events, err := all(watch.Recv)
	if err != nil || len(events) == 0 {
		return fmt.Errorf("%d events: %v", len(events), err)
	}
	last := events[len(events)-1]
	if last.Job.State != v1.JobState_JOB_DONE || last.EventId == "" {
		return fmt.Errorf("the last event is %v", last)
	}
	return nil
}

func read(ctx context.Context, p peers, id string) error {
	results, err := p.jobs.Results(ctx, &v1.ResultsRequest{Id: id, Key: []string{"z"}, Json: true})
	if err != nil {
		return err
	}
	items, err := all(results.Recv)
	if err != nil || len(items) != 1 || items[0].Json[0] != "3" || string(items[0].Packs) != "\x03" {
		return fmt.Errorf("results %v: %v", items, err)
	}
	result, err := p.jobs.Result(ctx, &v1.ResultRequest{Id: id, Key: "z"})
	if err != nil {
		return err
	}
	bodies, err := all(result.Recv)
	if err != nil || text(bodies) != "3" || bodies[0].ContentType != "application/json" {
		return fmt.Errorf("result %v: %v", bodies, err)
	}
	return nil
}

func submitFollowRead(ctx context.Context, p peers) error {
	answer, err := submit(ctx, p, graph[:20], graph[20:])
	if err != nil {
		return err
	}
	if err := follow(ctx, p, answer.Id); err != nil {
		return err
	}
	return read(ctx, p, answer.Id)
}

func ref(key string) *v1.Argument {
	return &v1.Argument{Kind: &v1.Argument_Ref{Ref: key}}
}

func typedGraph(ctx context.Context, p peers) error {
	answer, err := p.jobs.SubmitGraph(ctx, &v1.SubmitGraphRequest{
		WaitS: 30, WantValues: true,
		Options: &v1.JobOptions{Name: "typed", Labels: map[string]string{"lang": "go"}},
		Tasks: []*v1.Task{
			{Key: "x", Value: &v1.Argument{Kind: &v1.Argument_Integer{Integer: 1}}},
			{Key: "y", Op: "inc", Args: []*v1.Argument{ref("x")}},
			{Key: "z", Op: "add", Args: []*v1.Argument{ref("x"), ref("y")}},
		},
		Targets: []string{"z"},
	})
	if err != nil {
		return err
	}
	if len(answer.Values) != 1 || answer.Values[0].Key != "z" || string(answer.Values[0].Pack) != "\x03" {
		return fmt.Errorf("the answer is %v", answer)
	}
	job, err := p.jobs.Get(ctx, &v1.GetJobRequest{Id: answer.Id})
	if err != nil || job.State != v1.JobState_JOB_DONE || job.Name != "typed" || job.Labels["lang"] != "go" {
		return fmt.Errorf("job %v: %v", job, err)
	}
	return nil
}

func errorsHaveWords(ctx context.Context, p peers) error {
	_, err := submit(ctx, p, `{"dsk": {"x": ["incc", 1]}, "targets": ["x"]}`)
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "incc") {
		return fmt.Errorf("an unknown op: %v", err)
	}
	_, err = p.jobs.Get(ctx, &v1.GetJobRequest{Id: "j9-99"})
	if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "j9-99") {
		return fmt.Errorf("an unknown job: %v", err)
	}
	return nil
}

func anObjectGoesUpAndDown(ctx context.Context, p peers) error {
	put, err := p.store.Put(ctx)
	if err != nil {
		return err
	}
	if err := put.Send(&v1.PutRequest{Body: body(`{"three": [3]}`)}); err != nil {
		return err
	}
	object, err := put.CloseAndRecv()
	if err != nil {
		return err
	}
	get, err := p.store.Get(ctx, &v1.GetObjectRequest{Id: object.Id})
	if err != nil {
		return err
	}
	bodies, err := all(get.Recv)
	if err != nil || strings.ReplaceAll(text(bodies), " ", "") != `{"three":[3]}` {
		return fmt.Errorf("object %v: %v", bodies, err)
	}
	return nil
}

func connect(address string) *grpc.ClientConn {
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	return c
}

func main() {
	p := peers{v1.NewJobsClient(connect(os.Args[1])), v1.NewObjectsClient(connect(os.Args[2]))}
	failed := 0
	for _, c := range []struct {
		name string
		run  func(context.Context, peers) error
	}{
		{"submitFollowRead", submitFollowRead},
		{"typedGraph", typedGraph},
		{"errorsHaveWords", errorsHaveWords},
		{"anObjectGoesUpAndDown", anObjectGoesUpAndDown},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := c.run(ctx, p); err != nil {
			failed++
			fmt.Println("FAIL", c.name, err)
		} else {
			fmt.Println("ok", c.name)
		}
		cancel()
	}
	if failed > 0 {
		os.Exit(1)
	}
}
