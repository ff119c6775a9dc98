// A service of slow and fast requests, profiled by pyroscope-go and linked to its spans by otel-profiling-go.
//
// usage: go run . SERVER TRUTH SECONDS root|all
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	otelpyroscope "github.com/grafana/otel-profiling-go"
	"github.com/grafana/pyroscope-go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const service = "conformance-go"

//go:noinline
func planted_hot_path(d time.Duration) (s uint64) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for i := uint64(0); i < 20000; i++ {
			s = s*6364136223846793005 + i
		}
	}
	return
}

//go:noinline
func ordinary_work(d time.Duration) (s uint64) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for i := uint64(0); i < 20000; i++ {
			s ^= s<<13 + i
		}
	}
	return
}

// request is a line of the file of truth.
type request struct {
	Trace string `json:"trace"`
	Root  string `json:"root"`
	Child string `json:"child"`
	Slow  bool   `json:"slow"`
}

func handle(tracer trace.Tracer, slow bool) request {
	name := map[bool]string{true: "GET /slow", false: "GET /fast"}[slow]
	ctx, root := tracer.Start(context.Background(), name, trace.WithSpanKind(trace.SpanKindServer))
	_, child := tracer.Start(ctx, "child.compute")
	if slow {
		planted_hot_path(120 * time.Millisecond)
	} else {
		ordinary_work(15 * time.Millisecond)
	}
	child.End()
	time.Sleep(10 * time.Millisecond)
	root.End()
	id := root.SpanContext()
	return request{id.TraceID().String(), id.SpanID().String(), child.SpanContext().SpanID().String(), slow}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	server, truth, scope := os.Args[1], os.Args[2], os.Args[4]
	seconds, err := strconv.Atoi(os.Args[3])
	must(err)
	ctx := context.Background()
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(server+"/v1/traces"), otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
	must(err)
	name := resource.NewSchemaless(attribute.String("service.name", service+"-"+scope))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(name))
	var options []otelpyroscope.Option
	if scope == "all" {
		options = append(options, otelpyroscope.WithSpanIDLabelScope(otelpyroscope.ScopeAllSpans))
	}
	otel.SetTracerProvider(otelpyroscope.NewTracerProvider(provider, options...))
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: service + "-" + scope,
		ServerAddress:   server,
		UploadRate:      3 * time.Second,
		ProfileTypes:    []pyroscope.ProfileType{pyroscope.ProfileCPU, pyroscope.ProfileGoroutines, pyroscope.ProfileInuseSpace},
	})
	must(err)

	tracer := otel.Tracer(service)
	var (
		workers sync.WaitGroup
		lock    sync.Mutex
		done    []request
	)
	stop := time.Now().Add(time.Duration(seconds) * time.Second)
	for worker := 0; worker < 3; worker++ {
		workers.Go(func() {
			for i := worker; time.Now().Before(stop); i++ {
				one := handle(tracer, i%5 == 0)
				lock.Lock()
				done = append(done, one)
				lock.Unlock()
			}
		})
	}
	workers.Wait()
	must(profiler.Stop())
	must(provider.Shutdown(ctx))
	file, err := os.Create(truth)
	must(err)
	must(json.NewEncoder(file).Encode(done))
	must(file.Close())
}
