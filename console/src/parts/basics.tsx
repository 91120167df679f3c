// Small elements that all screens share.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { exactBytes, shortBytes } from '../format/numbers.ts'
import { age, useNow, utc } from '../format/times.ts'

const meanings: Record<string, 'good' | 'warn' | 'bad' | 'info' | 'quiet'> = {
  ready: 'good',
  pending: 'info',
  suspended: 'warn',
  paused: 'quiet',
  deleting: 'warn',
  failed: 'bad',
  succeeded: 'good',
  running: 'info',
  superseded: 'quiet',
  complete: 'good',
  final: 'good',
  draft: 'info',
  void: 'quiet',
  delivered: 'good',
  dead: 'bad',
  True: 'good',
  False: 'bad',
  Unknown: 'quiet',
  healthy: 'good',
  unhealthy: 'bad',
  unknown: 'quiet',
  admin: 'info',
  rolling_back: 'warn',
  rolled_back: 'warn',
  canceled: 'quiet',
  canceling: 'warn',
  done: 'good',
  moved: 'good',
  moving: 'info',
  skipped: 'warn',
}

/** A state as a coloured label. Its text is the API's. */
export function Badge({ text, kind }: { text: string; kind?: 'good' | 'warn' | 'bad' | 'info' | 'quiet' }) {
  return <span class={`badge badge-${kind ?? meanings[text] ?? 'quiet'}`}>{text}</span>
}

/** The age of a time, with the exact time as its title. */
export function Age({ at, never = '–' }: { at: string | null; never?: string }) {
  const now = useNow()
  if (at === null) return <span class="dim">{never}</span>
  return (
    <time dateTime={at} title={utc(at)}>
      {age(at, now)}
    </time>
  )
}

/** A size in a short form, with its exact bytes as its title. */
export function Bytes({ bytes }: { bytes: number }) {
  return <span title={exactBytes(bytes)}>{shortBytes(bytes)}</span>
}

/** A button that copies a text, and reports that it did. */
export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [result, setResult] = useState('')
  const copy = () => {
    navigator.clipboard.writeText(text).then(
      () => setResult('Copied'),
      () => setResult('Copying is not allowed here'),
    )
  }
  return (
    <span class="copy">
      <button type="button" class="button small quiet" onClick={copy}>
        {label}
      </button>
      <span role="status" class="copy-result">
        {result}
      </span>
    </span>
  )
}

/** A code sample with a button that copies it. */
export function Snippet({ title, code }: { title: string; code: string }) {
  return (
    <figure class="snippet">
      <figcaption>
        <span>{title}</span>
        <CopyButton text={code} />
      </figcaption>
      <pre tabIndex={0} aria-label={title}>
        <code>{code}</code>
      </pre>
    </figure>
  )
}

interface CardProps {
  title?: string
  /** Elements at the right side of the title. */
  actions?: ComponentChildren
  children: ComponentChildren
  class?: string
}

/** A titled section. */
export function Card({ title, actions, children, class: more = '' }: CardProps) {
  return (
    <section class={`card ${more}`} aria-label={title}>
      {(title !== undefined || actions !== undefined) && (
        <header class="card-head">
          {title !== undefined && <h2>{title}</h2>}
          {actions !== undefined && <div class="card-actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  )
}

/** The title of a screen with its actions. It receives the focus when the screen opens, so that readers announce it. */
export function ScreenTitle({
  title,
  children,
  note,
}: {
  title: ComponentChildren
  children?: ComponentChildren
  note?: ComponentChildren
}) {
  return (
    <div class="screen-title">
      <div>
        <h1 tabIndex={-1} id="screen-title">
          {title}
        </h1>
        {note !== undefined && <p class="screen-note">{note}</p>}
      </div>
      <div class="screen-actions">{children}</div>
    </div>
  )
}

/** Terms with their values. */
export function Facts({ facts }: { facts: [term: string, value: ComponentChildren][] }) {
  return (
    <dl class="facts">
      {facts.map(([term, value]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

/** A bar that shows the used share of a quota, with the same in words. */
export function Meter({ label, percent }: { label: string; percent: number | undefined }) {
  if (percent === undefined) return null
  const level = percent >= 100 ? 'bad' : percent >= 80 ? 'warn' : 'good'
  return (
    <div
      class="meter"
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.min(percent, 100)}
      aria-valuetext={`${percent} %`}
    >
      <div class={`meter-bar meter-${level}`} style={{ width: `${Math.min(percent, 100)}%` }} />
    </div>
  )
}
