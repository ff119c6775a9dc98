/** Services as rows; every number leads to the spans behind it. */

import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import type { Service } from "../api/answers";
import { Sparkline } from "../parts/Sparkline";
import { type Column, type Order, Table } from "../parts/Table";
import { count, counted, duration, rate } from "../text/quantity";
import { percent } from "../text/share";
import { markColour } from "../theme/palette";
import { useTheme } from "../theme/theme";
import { useClock } from "../time/clock";
import { rangeSearch } from "../time/range";
import { quoted, serviceQuery } from "../traceql/text";
import type { HomeColumn } from "./search";

export function ServiceTable({
  services,
  order,
  onOrder,
}: {
  services: readonly Service[];
  order: Order<HomeColumn>;
  onOrder: (order: Order<HomeColumn>) => void;
}) {
  return (
    <Table
      label="Services"
      columns={COLUMNS}
      rows={services}
      rowKey={(service) => service.name}
      order={order}
      onOrder={onOrder}
    />
  );
}

const COLUMNS: readonly Column<Service, HomeColumn>[] = [
  { key: "name", heading: "Service", sortBy: (service) => service.name, cell: (service) => <Name service={service} /> },
  {
    key: "requests",
    heading: "Requests",
    title: "Spans through which requests entered the service, per time",
    isNumber: true,
    sortBy: (service) => service.requests,
    cell: (service) => (
      <Trend
        text={rate(service.requests_per_second)}
        title={counted(service.requests, "request")}
        line={
          service.series && (
            <Sparkline
              kind="bars"
              values={service.series.requests}
              colour="var(--line-strong)"
              label={`Requests of ${service.name} over time`}
            />
          )
        }
      />
    ),
  },
  {
    key: "errors",
    heading: "Errors",
    title: "Requests with status error",
    isNumber: true,
    sortBy: (service) => (service.requests > 0 ? service.errors / service.requests : undefined),
    cell: (service) => <Errors service={service} />,
  },
  {
    key: "p50",
    heading: "p50",
    title: "Half of the requests are at most this long",
    isNumber: true,
    sortBy: (service) => service.duration?.p50_ns,
    cell: (service) => quantile(service, "p50_ns"),
  },
  {
    key: "p99",
    heading: "p99",
    title: "99 of 100 requests are at most this long; opens the ones that are not",
    isNumber: true,
    sortBy: (service) => service.duration?.p99_ns,
    cell: (service) => <Slowest service={service} />,
  },
  {
    key: "cpu",
    heading: "CPU per request",
    title: "CPU time of the service's samples, divided by its requests",
    isNumber: true,
    sortBy: (service) => service.cpu_ns_per_request,
    cell: (service) =>
      service.cpu_ns_per_request === undefined ? (
        <Unknown why="no requests or no CPU samples" />
      ) : (
        <span title={`${duration(service.cpu_ns)} CPU in all`}>{duration(service.cpu_ns_per_request)}</span>
      ),
  },
  {
    key: "linked",
    heading: "Linked samples",
    title: "Samples that name a span or a trace, of all samples",
    isNumber: true,
    sortBy: (service) => (service.samples > 0 ? service.linked_samples / service.samples : undefined),
    cell: (service) => <Linked service={service} />,
  },
  { heading: "Profile", cell: (service) => <ProfileLink service={service} /> },
];

/** A link to the spans that a query selects, in the range on screen. */
function SpansLink({ q, title, children }: { q: string; title: string; children: ReactNode }) {
  const clock = useClock();
  return (
    <Link to="/spans" search={{ ...rangeSearch(clock.text), q }} title={title}>
      {children}
    </Link>
  );
}

function Name({ service }: { service: Service }) {
  const theme = useTheme();
  return (
    <span className="service-name">
      <span className="swatch" style={{ background: markColour(service.name, theme) }} />
      <SpansLink q={serviceQuery(service.name)} title={`Spans of ${service.name}`}>
        <bdi>{service.name || '""'}</bdi>
      </SpansLink>
    </span>
  );
}

function Trend({ text, title, line }: { text: ReactNode; title: string; line: ReactNode }) {
  return (
    <span className="trend" title={title}>
      {line}
      <span>{text}</span>
    </span>
  );
}

function Errors({ service }: { service: Service }) {
  if (service.requests === 0) return <Unknown why="no requests" />;
  const share = percent(service.errors / service.requests);
  const text =
    service.errors === 0 ? (
      <span className="muted">0</span>
    ) : (
      <SpansLink q={`{ resource.service.name = ${quoted(service.name)} && status = error }`} title="Failed spans">
        <span className="error-text">
          {count(service.errors)} ({share})
        </span>
      </SpansLink>
    );
  return (
    <Trend
      text={text}
      title={`${count(service.errors)} of ${counted(service.requests, "request")}`}
      line={
        service.series && (
          <Sparkline
            kind="bars"
            values={service.series.errors}
            colour="var(--error)"
            label={`Errors of ${service.name} over time`}
          />
        )
      }
    />
  );
}

function quantile(service: Service, name: "p50_ns" | "p99_ns"): ReactNode {
  return service.duration ? duration(service.duration[name]) : <Unknown why="no requests" />;
}

function Slowest({ service }: { service: Service }) {
  if (!service.duration) return <Unknown why="no requests" />;
  const { p99_ns, exact } = service.duration;
  return (
    <Trend
      text={
        <SpansLink
          q={`{ resource.service.name = ${quoted(service.name)} && duration >= ${p99_ns}ns }`}
          title="Spans at least as long"
        >
          {duration(p99_ns)}
        </SpansLink>
      }
      title={
        exact
          ? `longest ${duration(service.duration.max_ns)}`
          : `longest ${duration(service.duration.max_ns)}; quantiles are at most 1 % off`
      }
      line={
        service.series && (
          <Sparkline
            kind="line"
            values={service.series.p99_ns}
            colour="var(--accent)"
            label={`p99 of ${service.name} over time`}
          />
        )
      }
    />
  );
}

function Linked({ service }: { service: Service }) {
  if (service.samples === 0) return <span className="muted">not profiled</span>;
  return (
    <span title={`${count(service.linked_samples)} of ${counted(service.samples, "sample")}`}>
      {percent(service.linked_samples / service.samples)} <span className="muted">of {count(service.samples)}</span>
    </span>
  );
}

function ProfileLink({ service }: { service: Service }) {
  const clock = useClock();
  if (service.samples === 0) return null;
  return (
    <Link
      to="/profiles"
      search={{ ...rangeSearch(clock.text), q: `{service.name=${quoted(service.name)}}` }}
      aria-label={`Flame graph of ${service.name}`}
    >
      Flame graph
    </Link>
  );
}

/** Absent is unknown, never 0. */
function Unknown({ why }: { why: string }) {
  return (
    <span className="muted" title={why}>
      -
    </span>
  );
}
