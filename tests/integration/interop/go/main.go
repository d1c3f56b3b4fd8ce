// The interop cases with Go's grpc-go: client ADDRESS. Prints one line a case; exits with 1 after a
// failure.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	_ "google.golang.org/genproto/googleapis/rpc/errdetails" // registers the types of status details
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"interop/pb"
)

const large = 3 << 20

var sizes = []int32{31415, 0, 9, 2653, large}

const words = "\t\nwhitespace\r\nand \u263a and \U0001f608\t\n"

type peers struct {
	test   pb.TestServiceClient
	gone   pb.UnimplementedServiceClient
	health healthpb.HealthClient
}

func withTimeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 20*time.Second)
}

func wrong(format string, args ...any) error {
	return fmt.Errorf(format, args...)
}

func wantCode(err error, code codes.Code) error {
	if status.Code(err) != code {
		return wrong("%v instead of %v", err, code)
	}
	return nil
}

func output(n ...int32) *pb.StreamingOutputRequest {
	r := &pb.StreamingOutputRequest{}
	for _, b := range n {
		r.Responses = append(r.Responses, &pb.ResponseParameters{Bytes: b})
	}
	return r
}

func emptyUnary(ctx context.Context, p peers) error {
	_, err := p.test.EmptyCall(ctx, &pb.Empty{})
	return err
}

func largeUnary(ctx context.Context, p peers) error {
	r, err := p.test.UnaryCall(ctx,
		&pb.SimpleRequest{ResponseBytes: large, Payload: make([]byte, large)})
	if err == nil && len(r.Payload) != large {
		return wrong("%d bytes", len(r.Payload))
	}
	return err
}

func clientStreaming(ctx context.Context, p peers) error {
	s, err := p.test.StreamingInputCall(ctx)
	if err != nil {
		return err
	}
	for _, n := range []int{27182, 8, 1828, 45904, 0} {
		if err := s.Send(&pb.StreamingInputRequest{Payload: make([]byte, n)}); err != nil {
			return err
		}
	}
	r, err := s.CloseAndRecv()
	if err == nil && (r.PayloadBytes != 74922 || r.Messages != 5) {
		return wrong("%v", r)
	}
	return err
}

func serverStreaming(ctx context.Context, p peers) error {
	s, err := p.test.StreamingOutputCall(ctx, output(sizes...))
	if err != nil {
		return err
	}
	for _, n := range sizes {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		if len(r.Payload) != int(n) {
			return wrong("%d bytes instead of %d", len(r.Payload), n)
		}
	}
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		return wrong("%v instead of the end", err)
	}
	return nil
}

func pingPong(ctx context.Context, p peers) error {
	s, err := p.test.FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	for _, n := range sizes {
		if err := s.Send(output(n)); err != nil {
			return err
		}
		r, err := s.Recv()
		if err != nil {
			return err
		}
		if len(r.Payload) != int(n) {
			return wrong("%d bytes instead of %d", len(r.Payload), n)
		}
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		return wrong("%v instead of the end", err)
	}
	return nil
}

func emptyStream(ctx context.Context, p peers) error {
	s, err := p.test.FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	if _, err := s.Recv(); !errors.Is(err, io.EOF) {
		return wrong("%v instead of the end", err)
	}
	return nil
}

func statusCodeAndMessage(ctx context.Context, p peers) error {
	_, err := p.test.UnaryCall(ctx,
		&pb.SimpleRequest{Status: &pb.WantedStatus{Code: 9, Message: words}})
	if status.Convert(err).Message() != words {
		return wrong("%q", status.Convert(err).Message())
	}
	return wantCode(err, codes.FailedPrecondition)
}

func statusWithDetails(ctx context.Context, p peers) error {
	_, err := p.test.UnaryCall(ctx,
		&pb.SimpleRequest{Status: &pb.WantedStatus{Code: 3, Message: "bad", Details: true}})
	details := status.Convert(err).Details()
	if len(details) != 1 || !strings.Contains(fmt.Sprint(details[0]), "INTEROP") {
		return wrong("details are %v", details)
	}
	return wantCode(err, codes.InvalidArgument)
}

func unimplemented(ctx context.Context, p peers) error {
	_, err := p.test.UnimplementedCall(ctx, &pb.Empty{})
	if err := wantCode(err, codes.Unimplemented); err != nil {
		return err
	}
	_, err = p.gone.UnimplementedCall(ctx, &pb.Empty{})
	return wantCode(err, codes.Unimplemented)
}

func cancelAfterBegin(ctx context.Context, p peers) error {
	ctx, cancel := context.WithCancel(ctx)
	s, err := p.test.StreamingInputCall(ctx)
	if err != nil {
		cancel()
		return err
	}
	cancel()
	_, err = s.CloseAndRecv()
	return wantCode(err, codes.Canceled)
}

func cancelAfterFirstResponse(ctx context.Context, p peers) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := p.test.FullDuplexCall(ctx)
	if err != nil {
		return err
	}
	if err := s.Send(output(31415)); err != nil {
		return err
	}
	if _, err := s.Recv(); err != nil {
		return err
	}
	cancel()
	_, err = s.Recv()
	return wantCode(err, codes.Canceled)
}

func deadline(ctx context.Context, p peers) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	s, err := p.test.FullDuplexCall(ctx)
	if err == nil {
		_, err = s.Recv()
	}
	return wantCode(err, codes.DeadlineExceeded)
}

func customMetadata(ctx context.Context, p peers) error {
	ctx = metadata.AppendToOutgoingContext(ctx, "x-interop-echo", "text",
		"x-interop-echo-bin", "\xab\x00\xff")
	var initial, trailing metadata.MD
	_, err := p.test.UnaryCall(ctx, &pb.SimpleRequest{}, grpc.Header(&initial),
		grpc.Trailer(&trailing))
	if err != nil {
		return err
	}
	if v := initial.Get("x-interop-echo"); len(v) != 1 || v[0] != "text" {
		return wrong("initial %v", v)
	}
	if v := trailing.Get("x-interop-echo-bin"); len(v) != 1 || v[0] != "\xab\x00\xff" {
		return wrong("trailing %q", v)
	}
	return nil
}

func manyAtOnce(ctx context.Context, p peers) error {
	var all sync.WaitGroup
	errs := make(chan error, 200)
	for n := int32(0); n < 200; n++ {
		all.Add(1)
		go func() {
			defer all.Done()
			r, err := p.test.UnaryCall(ctx, &pb.SimpleRequest{ResponseBytes: n})
			if err == nil && len(r.Payload) != int(n) {
				err = wrong("%d bytes instead of %d", len(r.Payload), n)
			}
			errs <- err
		}()
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func healthCheck(ctx context.Context, p peers) error {
	r, err := p.health.Check(ctx, &healthpb.HealthCheckRequest{Service: "millrace.interop.TestService"})
	if err == nil && r.Status != healthpb.HealthCheckResponse_SERVING {
		return wrong("%v", r)
	}
	return err
}

func main() {
	conn, err := grpc.NewClient(os.Args[1],
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println("FAIL", err)
		os.Exit(1)
	}
	defer conn.Close()
	p := peers{pb.NewTestServiceClient(conn), pb.NewUnimplementedServiceClient(conn),
		healthpb.NewHealthClient(conn)}
	cases := []struct {
		name string
		run  func(context.Context, peers) error
	}{
		{"empty_unary", emptyUnary}, {"large_unary", largeUnary},
		{"client_streaming", clientStreaming}, {"server_streaming", serverStreaming},
		{"ping_pong", pingPong}, {"empty_stream", emptyStream},
		{"status_code_and_message", statusCodeAndMessage},
		{"status_with_details", statusWithDetails}, {"unimplemented", unimplemented},
		{"cancel_after_begin", cancelAfterBegin},
		{"cancel_after_first_response", cancelAfterFirstResponse}, {"deadline", deadline},
		{"custom_metadata", customMetadata}, {"many_at_once", manyAtOnce},
		{"health", healthCheck},
	}
	failed := 0
	for _, c := range cases {
		ctx, cancel := withTimeout()
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
