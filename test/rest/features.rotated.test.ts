// Tests each feature that PostgREST documents, and compares the result with the table in docs/rest.md. This file also
// writes the table (TENANTRY_WRITE_DOCS=1).
import t from 'tap'
import { checkDocumented } from '#test/support/documented.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { aggregates } from './features/aggregates.ts'
import { bodies } from './features/bodies.ts'
import { calls } from './features/calls.ts'
import { changing } from './features/changing.ts'
import { embeddedParameters } from './features/embedded-parameters.ts'
import { embedding } from './features/embedding.ts'
import { errors } from './features/errors.ts'
import { filterErrors } from './features/filter-errors.ts'
import { filters } from './features/filters.ts'
import { forms, settings } from './features/forms.ts'
import { functionResponses } from './features/function-responses.ts'
import { functions } from './features/functions.ts'
import { media } from './features/media.ts'
import { ordering } from './features/ordering.ts'
import { reading } from './features/reading.ts'
import { makeScene, type Feature } from './features/scene.ts'
import { requestSettings } from './features/settings.ts'
import { tenantSettings } from './features/tenant-settings.ts'
import { upserts } from './features/upserts.ts'
import { writing } from './features/writing.ts'

const groups: Record<string, Feature[]> = {
  Reading: reading,
  Filters: [...filters, ...filterErrors],
  'Order and pages': ordering,
  Embedding: [...embedding, ...embeddedParameters],
  Aggregates: aggregates,
  Writing: [...writing, ...changing, ...bodies],
  Upserts: upserts,
  Functions: [...functions, ...calls, ...functionResponses],
  'Headers and forms': [...forms, ...requestSettings, ...media],
  'With settings of the tenant': tenantSettings,
  'With settings of the operator': settings,
  Errors: errors,
}

t.test('Features', async (t) => {
  const runtime = await startRuntime(t)
  const allowing = await startRuntime(t, { rest: { allowsRollback: true, allowsAggregates: false, sendsTiming: true } })
  for (const [group, features] of Object.entries(groups)) {
    t.test(group, async (t) => {
      const scene = await makeScene(features === settings ? allowing : runtime)
      for (const { feature, here, check } of features) {
        await t.test(`${here}: ${feature}`, async (t) => {
          await check(scene(t))
        })
      }
    })
  }

  t.test('The table in the documentation matches the features', async (t) => {
    const names = Object.entries(groups).flatMap(([group, features]) =>
      features.map(({ feature }) => `${group}: ${feature}`),
    )
    t.equal(new Set(names).size, names.length, 'each once')
    await checkDocumented(t, 'rest.md', 'test/rest/features.rotated.test.ts', table())
  })

  t.same([...runtime.errors, ...allowing.errors], [], 'no internal error occurred')
})

function table(): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`
  const all = Object.values(groups).flat()
  const count = (here: Feature['here']) => all.filter((feature) => feature.here === here).length
  const sections = Object.entries(groups).map(([group, features]) => {
    const rows = features.map(({ feature, here, note }) => [
      feature,
      [...(here === 'same' ? [] : [here]), ...(note === undefined ? [] : [note])].join(': '),
    ])
    return `\n**${group}**\n\n${[['feature', 'here'], ['---', '---'], ...rows].map(line).join('')}`
  })
  const score = `${count('same')} are the same, ${count('differs')} differ, ${count('absent')} are absent`
  return `${all.length} features: ${score}.\n${sections.join('')}`
}
