/** Home: how the services fare. */

import { useQuery } from "@tanstack/react-query";

import { services } from "../api/questions";
import { Asked } from "../parts/State";
import { useClock } from "../time/clock";

export function HomeScreen() {
  const clock = useClock();
  const query = useQuery(services(clock.range));
  return (
    <Asked what="services" query={query}>
      {(answer) => <p>{answer.services.map((service) => service.name).join(", ")}</p>}
    </Asked>
  );
}
