// The alert rules, evaluated by Prometheus' own promtool: each fires for its series, states what happened, and stays quiet
// otherwise.
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { exists, installPackages } from '#scripts/debian-packages.ts'
import { alertCases } from './support/alert-cases.ts'
import { folder, readAlerts, readQueries } from './support/read-alerts.ts'

if (!(await exists('/usr/bin/promtool'))) await installPackages('prometheus')
const directory = t.testdir({})
const run = promisify(execFile)
/** Runs promtool. @returns its output; with the exit code in front if that is not 0 */
const promtool = (...args: string[]): Promise<string> =>
  run('/usr/bin/promtool', args, { timeout: 120_000 }).then(
    ({ stdout }) => stdout,
    (error: unknown) => {
      const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
      return `${code} ${stdout}${stderr}`
    },
  )

const alerts = await readAlerts()

interface RuleTest {
  interval: string
  input_series: object[]
  alert_rule_test: object[]
}

/** Runs unit tests of the rules, in promtool's format. */
async function testRules(tests: RuleTest[]): Promise<string> {
  const intervals = [...new Set(tests.map(({ interval }) => interval))]
  const files = await Promise.all(
    intervals.map(async (interval) => {
      const file = join(directory, `tests-${interval}.json`)
      const ofInterval = tests.filter((one) => one.interval === interval)
      const rules = { rule_files: [join(folder, 'alerts.yml')], evaluation_interval: interval }
      // JSON is YAML, too.
      await writeFile(file, JSON.stringify({ ...rules, tests: ofInterval }))
      return file
    }),
  )
  return promtool('test', 'rules', ...files)
}

const seriesOf = (series: Record<string, string>) =>
  Object.entries(series).map(([name, values]) => ({ series: name, values }))

function firing(name: string): RuleTest {
  const rule = alerts.find((alert) => alert.name === name)
  const { interval, fires, at, labels, summary } = caseOf(name)
  const expected = {
    exp_labels: { ...labels, severity: rule?.severity },
    exp_annotations: { summary, description: rule?.description },
  }
  return {
    interval,
    input_series: seriesOf(fires),
    alert_rule_test: [{ eval_time: at, alertname: name, exp_alerts: [expected] }],
  }
}

function quiet(name: string): RuleTest {
  const { interval, quiet, at } = caseOf(name)
  return {
    interval,
    input_series: seriesOf(quiet),
    alert_rule_test: [{ eval_time: at, alertname: name, exp_alerts: [] }],
  }
}

function caseOf(name: string) {
  const found = alertCases[name]
  if (found === undefined) throw new Error(`The alert ${name} has no test`)
  return found
}

t.test('The rules and the example of a configuration are valid', async (t) => {
  t.match(await promtool('check', 'rules', join(folder, 'alerts.yml')), /SUCCESS: \d+ rules found/)
  const files = t.testdir({ 'platform-key': '', 'internal-token': '' })
  for (const name of ['alerts.yml', 'prometheus.yml'])
    await run('cp', [join(folder, name), join(files, name)], { timeout: 10_000 })
  t.match(await promtool('check', 'config', join(files, 'prometheus.yml')), /is valid prometheus config file syntax/)
})

t.test('Every rule has a test', (t) => {
  t.ok(alerts.length >= 40)
  t.same(alerts.map(({ name }) => name).sort(), Object.keys(alertCases).sort())
  t.end()
})

t.test('Each alert fires and states what happened', async (t) => {
  const output = await testRules(alerts.map(({ name }) => firing(name)))
  t.match(output, /SUCCESS/)
  t.notMatch(output, /FAILED/, output.slice(0, 4_000))
})

t.test('Each alert stays quiet below its bound', async (t) => {
  const output = await testRules(alerts.map(({ name }) => quiet(name)))
  t.match(output, /SUCCESS/)
  t.notMatch(output, /FAILED/, output.slice(0, 4_000))
})

t.test('A rule that does not fire is reported', async (t) => {
  const name = 'TenantryQueueStuck'
  const output = await testRules([{ ...firing(name), input_series: seriesOf(caseOf(name).quiet) }])
  t.match(output, /^1 /)
  t.match(output, /FAILED/)
})

t.test('Every query of the dashboard is valid', async (t) => {
  const queries = await readQueries()
  t.ok(queries.length >= 30)
  const rules = queries.map(({ expr }, nth) => ({
    record: `query_${nth}`,
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll(/\$\w+/g, '.+'),
  }))
  const file = join(directory, 'queries.json')
  await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
  t.match(await promtool('check', 'rules', file), new RegExp(`SUCCESS: ${queries.length} rules found`))
})
