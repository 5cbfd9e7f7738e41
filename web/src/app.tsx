import { useEffect, useRef, useState } from "preact/hooks";
import { useConnection } from "./api/live";
import { go, href, type Route, useRoute } from "./lib/route";
import { switchTheme } from "./lib/theme";
import { useKeys } from "./lib/keys";
import { DeadLetterFilePage, DeadLettersPage } from "./pages/dead_letters";
import { FailuresPage } from "./pages/failures";
import { MigrationPage } from "./pages/migration";
import { OverviewPage } from "./pages/overview";
import { ReplicaPage } from "./pages/replica";
import { ReplicasPage } from "./pages/replicas";
import { TaskPage } from "./pages/task";
import { WorkPage } from "./pages/work";
import { WorkRunPage } from "./pages/work_run";
import { Help } from "./parts/help";
import { Notice } from "./parts/notice";
import { TopBar } from "./parts/top_bar";

export function App() {
  const route = useRoute();
  const [help, setHelp] = useState(false);
  const main = useRef<HTMLElement>(null);
  const signedOut = useConnection().state === "signed out";
  useKeys([
    { keys: "?", what: "this help", run: () => setHelp(true) },
    { keys: "g m", what: "migrations", run: () => go(href([])) },
    { keys: "g w", what: "work", run: () => go(href(["work"])) },
    { keys: "g r", what: "replica sets", run: () => go(href(["replicas"])) },
    { keys: "g f", what: "failures", run: () => go(href(["failures"])) },
    { keys: "g d", what: "dead letters", run: () => go(href(["dead-letters"])) },
    { keys: "/", what: "filter", run: focusFilter },
    { keys: "j", what: "next row", run: () => moveRow(1) },
    { keys: "k", what: "previous row", run: () => moveRow(-1) },
    { keys: "u", what: "back to the previous page", run: () => history.back() },
    { keys: "t", what: "dark or light", run: switchTheme },
  ]);
  const place = route.path.join("/");
  useEffect(() => {
    document.title = [...route.path].reverse().concat("Muster").join(" · ");
    scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [place]);
  return (
    <>
      <TopBar section={route.path[0] ?? ""} onHelp={() => setHelp(true)} />
      <main ref={main} tabIndex={-1}>
        {signedOut ? <SignedOut /> : <Page key={place} route={route} />}
      </main>
      {help && <Help onClose={() => setHelp(false)} />}
      <Notice />
    </>
  );
}

function Page({ route }: { route: Route }) {
  const [section, a, b, c, d] = route.path;
  if (!section) return <OverviewPage query={route.query} />;
  if (section === "migrations" && a && b && c && d) {
    return <TaskPage store={a} migration={b} phase={c} task={d} />;
  }
  if (section === "migrations" && a && b) {
    return <MigrationPage store={a} migration={b} query={route.query} />;
  }
  if (section === "work" && a && b) return <WorkRunPage store={a} run={b} query={route.query} />;
  if (section === "work") return <WorkPage />;
  if (section === "replicas" && a && b)
    return <ReplicaPage store={a} set={b} query={route.query} />;
  if (section === "replicas") return <ReplicasPage />;
  if (section === "failures") return <FailuresPage query={route.query} />;
  if (section === "dead-letters" && a) return <DeadLetterFilePage file={a} query={route.query} />;
  if (section === "dead-letters") return <DeadLettersPage query={route.query} />;
  return (
    <div class="empty">
      Page not found. <a href={href([])}>Go to migrations</a>
    </div>
  );
}

function SignedOut() {
  return (
    <div class="empty">
      <h1>Signed out</h1>
      <p>
        Open the login link that <code>muster serve</code> printed when it started, or run{" "}
        <code>muster serve --login-link</code> to see it again.
      </p>
    </div>
  );
}

function focusFilter(): void {
  document.querySelector<HTMLElement>("main input[type=search]")?.focus();
}

// A row is selected by focusing its first link, so that Enter opens it.
function moveRow(by: number): void {
  const links = [...document.querySelectorAll<HTMLElement>("main tbody tr")]
    .map((row) => row.querySelector<HTMLElement>("a, button"))
    .filter((link) => link !== null);
  const at = links.findIndex((link) => link === document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by;
  links[Math.min(links.length - 1, Math.max(0, next))]?.focus();
}
