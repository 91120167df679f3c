// Reads the alert rules and the dashboard of deploy/observability/.
import { readFile } from 'node:fs/promises'

export const folder = new URL('../../../deploy/observability/', import.meta.url).pathname

export interface AlertRule {
  name: string
  expr: string
  severity: string
  description: string
}

/** Reads the alert rules. Each is written in the same order: alert, expr, for, severity, summary, description. */
export async function readAlerts(): Promise<AlertRule[]> {
  const text = await readFile(`${folder}alerts.yml`, 'utf8')
  return text
    .split(/^ {6}- alert: /m)
    .slice(1)
    .map((rule) => ({
      name: /^\w+/.exec(rule)?.[0] ?? '',
      expr: member(rule, 'expr'),
      severity: member(rule, 'severity'),
      description: member(rule, 'description'),
    }))
}

interface Panel {
  title: string
  panels?: Panel[]
  targets?: { expr: string }[]
}

/** Returns the queries of the dashboard, with the title of their panels. */
export async function readQueries(): Promise<{ title: string; expr: string }[]> {
  const { panels } = JSON.parse(await readFile(`${folder}grafana-dashboard.json`, 'utf8')) as { panels: Panel[] }
  const all = panels.flatMap((panel) => [panel, ...(panel.panels ?? [])])
  return all.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })))
}

/** Returns the names of the metrics in an expression, without the suffixes of a histogram's series. */
export function metricsIn(expr: string): string[] {
  const names = expr.replaceAll(/"[^"]*"/g, '').match(/\b(?:tenantry|process|nodejs)_\w+/g) ?? []
  return [...new Set(names.map((name) => name.replace(/_seconds_(?:bucket|sum|count)$/, '_seconds')))]
}

function member(rule: string, name: string): string {
  const value = new RegExp(`^ +${name}: (.*)$`, 'm').exec(rule)?.[1]
  if (value === undefined) throw new Error(`A rule has no ${name}: ${rule.slice(0, 100)}`)
  if (value.startsWith("'")) return value.slice(1, -1).replaceAll("''", "'")
  return value.startsWith('"') ? (JSON.parse(value) as string) : value
}
