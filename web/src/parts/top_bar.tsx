import { reconnectNow, useConnection, useLive, useNow } from "../api/live";
import type { Overview } from "../api/types";
import { duration, short } from "../lib/format";
import { href } from "../lib/route";
import { switchTheme, useTheme } from "../lib/theme";

export const overviewPath = "/api/v1/overview";

export function TopBar({ section, onHelp }: { section: string; onHelp: () => void }) {
  const { data } = useLive<Overview>(overviewPath);
  const theme = useTheme();
  const link = (name: string, title: string, tally?: number) => (
    <a href={href(name ? [name] : [])} aria-current={isCurrent(section, name) ? "page" : undefined}>
      {title}
      {!!tally && <span class="tally">{short(tally)}</span>}
    </a>
  );
  return (
    <header class="top">
      <a class="brand" href={href([])}>
        <img src="icon.svg" width="22" height="22" alt="" />
        Muster
      </a>
      <nav aria-label="Pages">
        {link("", "Migrations")}
        {link("work", "Work")}
        {link("replicas", "Replica sets")}
        {link("failures", "Failures", data?.failures_total)}
        {link("dead-letters", "Dead letters", data?.dead_letters)}
      </nav>
      <div class="tools">
        <LiveBadge />
        <button
          class="plain"
          onClick={switchTheme}
          aria-label={theme === "dark" ? "Light colours" : "Dark colours"}
        >
          {theme === "dark" ? "☀" : "☾"}
        </button>
        <button class="plain" onClick={onHelp} aria-label="Keys">
          ?
        </button>
      </div>
    </header>
  );
}

function isCurrent(section: string, name: string): boolean {
  return section === name || (name === "" && section === "migrations");
}

// Whether the page is up to date.
function LiveBadge() {
  const connection = useConnection();
  useNow();
  if (connection.state === "live") {
    return (
      <span class="badge live" role="status">
        live
      </span>
    );
  }
  if (connection.state !== "stale") {
    return (
      <span class="badge muted" role="status">
        {connection.state}
      </span>
    );
  }
  const next = Math.max(0, Math.ceil((connection.retryAt - Date.now()) / 1000));
  return (
    <>
      <span class="badge stale" role="status" title={connection.why}>
        stale for {duration(Math.max(1000, Date.now() - connection.since))}
      </span>
      <button
        class="plain"
        onClick={reconnectNow}
        aria-label={`${connection.why}; reconnects in ${next} s. Connect now`}
      >
        reconnect
      </button>
    </>
  );
}
