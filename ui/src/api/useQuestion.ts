import { type UseQueryResult, useQuery, useQueryClient } from "@tanstack/react-query";

import type { Question } from "./questions";

/** Asks a question that can be given up: `cancel` aborts the request and keeps what is on screen. */
export function useQuestion<T>(
  question: Question<T>,
  options: { enabled?: boolean } = {},
): { query: UseQueryResult<T>; cancel: () => void } {
  const client = useQueryClient();
  const query = useQuery({ ...question, ...options });
  return { query, cancel: () => void client.cancelQueries({ queryKey: question.queryKey, exact: true }) };
}
