import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The server whose answers `npm run dev` shows.
const SERVER = process.env.SPANFLAME_URL ?? "http://127.0.0.1:4040";

export default defineConfig({
  plugins: [react()],
  build: {
    // The content security policy allows nothing inline and no data: URL.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2023",
    // build/budget.mjs reads which chunks the first screen needs.
    manifest: true,
  },
  server: {
    host: "127.0.0.1",
    proxy: { "/api": SERVER, "/healthz": SERVER, "/readyz": SERVER },
  },
  test: {
    environment: "node",
    include: ["src/**/*.test.ts", "src/**/*.test.tsx"],
  },
});
