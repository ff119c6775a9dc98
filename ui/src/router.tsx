/** The addresses of the page. Every screen is loaded when it is first gone to. */

import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from "@tanstack/react-router";

import { compareSearch } from "./compare/search";
import { Frame } from "./frame/Frame";
import { NotFound } from "./frame/NotFound";
import { ScreenFailed } from "./frame/ScreenFailed";
import { homeSearch } from "./home/search";
import { Loading } from "./parts/State";
import { profilesSearch } from "./profiles/search";
import { spansSearch } from "./spans/search";
import { traceSearch } from "./trace/search";
import { parseSearchText, searchText } from "./url/text";
import { viewSearch } from "./view/search";

const root = createRootRoute({ component: Frame, notFoundComponent: NotFound });

const routes = [
  createRoute({
    getParentRoute: () => root,
    path: "/",
    validateSearch: homeSearch,
    component: lazyRouteComponent(() => import("./home/HomeScreen"), "HomeScreen"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/spans",
    validateSearch: spansSearch,
    component: lazyRouteComponent(() => import("./spans/SpansScreen"), "SpansScreen"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/trace/$traceId",
    validateSearch: traceSearch,
    component: lazyRouteComponent(() => import("./trace/TraceScreen"), "TraceScreen"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/compare",
    validateSearch: compareSearch,
    component: lazyRouteComponent(() => import("./compare/CompareScreen"), "CompareScreen"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/profiles",
    validateSearch: profilesSearch,
    component: lazyRouteComponent(() => import("./profiles/ProfilesScreen"), "ProfilesScreen"),
  }),
  createRoute({
    getParentRoute: () => root,
    path: "/view",
    validateSearch: viewSearch,
    component: lazyRouteComponent(() => import("./view/ViewScreen"), "ViewScreen"),
  }),
] as const;

export const router = createRouter({
  routeTree: root.addChildren(routes),
  parseSearch: parseSearchText,
  stringifySearch: searchText,
  // A screen's code is loaded while the pointer is still on its way.
  defaultPreload: "intent",
  defaultPendingComponent: () => <Loading what="the screen" />,
  defaultErrorComponent: ScreenFailed,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
