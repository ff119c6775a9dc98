/** The page: theme, questions, router. */

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { Failure } from "./api/client";
import { router } from "./router";
import "./theme/tokens.css";
import "./theme/base.css";

/** Tries after the first, and only where the server may answer the next one. */
const RETRIES_MAX = 2;

const questions = new QueryClient({
  defaultOptions: {
    queries: {
      // Ranges are points in time: the same question has the same answer, except for what arrives late.
      staleTime: 15_000,
      // Live mode asks a new question every few seconds; what nobody looks at any more need not pile up.
      gcTime: 60_000,
      refetchOnWindowFocus: false,
      // The server is usually on this machine; "offline" says nothing about it.
      networkMode: "always",
      retry: (failures, error) => failures < RETRIES_MAX && error instanceof Failure && error.isTransient,
    },
  },
});

const place = document.getElementById("root");
if (!place) throw new Error("index.html lacks #root");
createRoot(place).render(
  <StrictMode>
    <QueryClientProvider client={questions}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
