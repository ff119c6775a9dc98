/** Home: how the services fare, and the way into their slow and failed requests. */

import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";

import type { Services } from "../api/answers";
import { services } from "../api/questions";
import { named } from "../frame/target";
import { Asked, Empty } from "../parts/State";
import { counted, duration } from "../text/quantity";
import { useClock } from "../time/clock";
import { RANGE_PRESETS, relativeName } from "../time/range";
import { FirstData } from "./FirstData";
import { ServiceTable } from "./ServiceTable";
import { orderOf, orderText } from "./search";
import "./home.css";

/** So many services fit on a screen and need no filter. */
const FILTER_FROM = 20;
/** Points of a sparkline. */
const BUCKETS = 30;

export function HomeScreen() {
  const clock = useClock();
  const query = useQuery(services(clock.range, BUCKETS));
  return (
    <div className="home">
      <title>Spanflame</title>
      <Asked what="services" query={query}>
        {(answer) => (answer.services.length > 0 ? <Answered answer={answer} /> : <NothingInRange />)}
      </Asked>
    </div>
  );
}

function Answered({ answer }: { answer: Services }) {
  const { order, filter = "" } = useSearch({ from: "/" });
  const navigate = useNavigate({ from: "/" });
  return (
    <>
      <header className="home-head">
        <h1>Services</h1>
        <p className="muted">{summary(answer)}</p>
        {(answer.services.length > FILTER_FROM || filter !== "") && (
          <input
            className="field"
            type="search"
            aria-label="Filter services by name"
            placeholder="Filter by name"
            value={filter}
            onChange={(event) => {
              const text = event.target.value || undefined;
              void navigate({ search: (before) => ({ ...before, filter: text }), replace: true });
            }}
          />
        )}
      </header>
      <ServiceTable
        services={filter === "" ? answer.services : named(answer.services, filter)}
        order={orderOf(order)}
        onOrder={(next) =>
          void navigate({ search: (before) => ({ ...before, order: orderText(next) }), replace: true })
        }
      />
    </>
  );
}

/** `3 services, 41,898 spans, 10,567 samples; answered in 39.8 ms`. */
function summary(answer: Services): string {
  const spans = answer.services.reduce((sum, service) => sum + service.spans, 0);
  const samples = answer.services.reduce((sum, service) => sum + service.samples, 0);
  const parts = [counted(answer.services.length, "service"), counted(spans, "span"), counted(samples, "sample")];
  return `${parts.join(", ")}; answered in ${duration(answer.took_ms * 1e6)}`;
}

/** Either the store is empty, or only the range is. */
function NothingInRange() {
  const clock = useClock();
  const end = clock.now > clock.range.end ? clock.now : clock.range.end;
  const ever = useQuery(services({ start: 0n, end }));
  return (
    <Asked what="services" query={ever}>
      {(answer) =>
        answer.services.length === 0 ? (
          <FirstData onLook={clock.refresh} />
        ) : (
          <OutsideOfRange count={answer.services.length} />
        )
      }
    </Asked>
  );
}

function OutsideOfRange({ count }: { count: number }) {
  const wider = RANGE_PRESETS.slice(-4);
  return (
    <Empty
      title="No data in this range"
      actions={
        <>
          {wider.map((preset) => (
            <Link key={preset.start} className="button" to="/" search={{ start: preset.start }}>
              {relativeName(preset)}
            </Link>
          ))}
          <Link className="button" to="/" search={{ start: "0" }}>
            Everything
          </Link>
        </>
      }
    >
      {counted(count, "service")} sent data at other times. Choose another range.
    </Empty>
  );
}
