import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Scope;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * A service of slow and fast requests, profiled by Pyroscope's Java agent and linked to its spans by that agent's extension of the
 * OpenTelemetry agent. Nothing here knows of either: both come with the command line.
 *
 * <p>usage: java ... Main SERVER TRUTH SECONDS
 */
public final class Main {
    /** Longer than the agent's upload interval: what was sampled last is on its way then. */
    private static final long LAST_UPLOAD_MS = 5_000;

    private static volatile long sink;

    private static long planted_hot_path(long ms) {
        long sum = 1;
        for (long end = System.nanoTime() + ms * 1_000_000; System.nanoTime() < end; )
            for (int i = 0; i < 20_000; i++) sum = sum * 6_364_136_223_846_793_005L + i;
        return sum;
    }

    private static long ordinary_work(long ms) {
        long sum = 1;
        for (long end = System.nanoTime() + ms * 1_000_000; System.nanoTime() < end; )
            for (int i = 0; i < 20_000; i++) sum ^= (sum << 13) + i;
        return sum;
    }

    /** A request; answers its line in the file of truth. */
    private static String handle(Tracer tracer, boolean slow) throws InterruptedException {
        Span root = tracer.spanBuilder(slow ? "GET /slow" : "GET /fast").setSpanKind(SpanKind.SERVER).startSpan();
        String child;
        try (Scope ofRoot = root.makeCurrent()) {
            Span inner = tracer.spanBuilder("child.compute").startSpan();
            child = inner.getSpanContext().getSpanId();
            try (Scope ofChild = inner.makeCurrent()) {
                sink += slow ? planted_hot_path(120) : ordinary_work(15);
            } finally {
                inner.end();
            }
            Thread.sleep(10);
        } finally {
            root.end();
        }
        String line = "{\"trace\":\"%s\",\"root\":\"%s\",\"child\":\"%s\",\"slow\":%s}";
        return line.formatted(root.getSpanContext().getTraceId(), root.getSpanContext().getSpanId(), child, slow);
    }

    public static void main(String[] arguments) throws Exception {
        Path truth = Path.of(arguments[1]);
        long stop = System.currentTimeMillis() + Long.parseLong(arguments[2]) * 1_000;
        Tracer tracer = GlobalOpenTelemetry.getTracer("conformance");
        List<String> lines = Collections.synchronizedList(new ArrayList<>());
        List<Thread> workers = new ArrayList<>();
        for (int worker = 0; worker < 3; worker++) {
            int first = worker;
            Thread thread = new Thread(() -> {
                try {
                    for (int i = first; System.currentTimeMillis() < stop; i++) lines.add(handle(tracer, i % 5 == 0));
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                }
            }, "worker-" + worker);
            thread.start();
            workers.add(thread);
        }
        for (Thread worker : workers) worker.join();
        Thread.sleep(LAST_UPLOAD_MS);
        Files.writeString(truth, "[" + String.join(",\n", lines) + "]");
    }
}
