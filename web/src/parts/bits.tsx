import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ago, count, exactTime, percent } from "../lib/format";
import { look } from "./state";

export function Panel(props: {
  title: string;
  note?: ComponentChildren;
  end?: ComponentChildren;
  children: ComponentChildren;
  bare?: boolean;
}) {
  return (
    <section class="panel" aria-label={props.title}>
      <header>
        <h2>{props.title}</h2>
        {props.note && <span class="muted">{props.note}</span>}
        {props.end && <span class="end">{props.end}</span>}
      </header>
      {props.bare ? props.children : <div class="body">{props.children}</div>}
    </section>
  );
}

export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  return (
    <dl class="panel facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Crumbs({ steps }: { steps: [string, string][] }) {
  return (
    <nav aria-label="Where you are">
      <ol class="crumbs">
        {steps.map(([name, address]) => (
          <li key={address}>
            <a href={address}>{name}</a>
          </li>
        ))}
      </ol>
    </nav>
  );
}

// Why something is not running, with its cause. Empty if it is running.
export function Why(props: {
  state: string;
  why?: string | undefined;
  children?: ComponentChildren;
}) {
  if (!props.why && !props.children) return null;
  return (
    <div class={"why " + look(props.state)}>
      {props.why && <p>{props.why}</p>}
      {props.children && <p class="muted">{props.children}</p>}
    </div>
  );
}

export function Ago({ at, now }: { at: number; now: number }) {
  return (
    <time class="nowrap" dateTime={new Date(at).toISOString()} title={exactTime(at)}>
      {ago(at, now)}
    </time>
  );
}

export function Bar({ fraction, label }: { fraction: number; label: string }) {
  return (
    <span class="bar" role="img" aria-label={`${label}: ${percent(fraction)}`}>
      <span style={{ width: `${Math.min(1, Math.max(0, fraction)) * 100}%` }} />
    </span>
  );
}

// A number that should be 0.
export function Bad({ number }: { number: number }) {
  return number ? <span class="failed">{count(number)}</span> : <>0</>;
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <div class="empty">{children}</div>;
}

// The equivalent command.
export function Command({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <div class="command">
      <code>{text}</code>
      {navigator.clipboard && (
        <button class="plain" onClick={() => void copy()} aria-label={"Copy the command " + text}>
          {copied ? "Copied" : "Copy"}
        </button>
      )}
    </div>
  );
}

export function Chips<T extends string>(props: {
  label: string;
  value: T;
  choices: [T, string][];
  onChange: (value: T) => void;
}) {
  return (
    <div class="chips" role="group" aria-label={props.label}>
      {props.choices.map(([value, name]) => (
        <button
          key={value}
          aria-pressed={value === props.value}
          onClick={() => props.onChange(value)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

// Text verbatim; JSON indented, with numbers as written.
export function Text({ label, text }: { label: string; text: string }) {
  return (
    <pre class="text" tabIndex={0} role="region" aria-label={label}>
      {text}
    </pre>
  );
}
