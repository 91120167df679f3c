// Each feature of PostgREST's documentation is tried, and is as the table in docs/rest.md says. The table is written from
// here (TENANTRY_WRITE_DOCS=1).
import t from 'tap'
import { checkDocumented } from '#test/support/documented.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { aggregates } from './features/aggregates.ts'
import { changing } from './features/changing.ts'
import { embeddedParameters } from './features/embedded-parameters.ts'
import { embedding } from './features/embedding.ts'
import { errors } from './features/errors.ts'
import { filterErrors } from './features/filter-errors.ts'
import { filters } from './features/filters.ts'
import { forms, rollbacks } from './features/forms.ts'
import { functionResponses } from './features/function-responses.ts'
import { functions } from './features/functions.ts'
import { ordering } from './features/ordering.ts'
import { reading } from './features/reading.ts'
import { makeScene, type Feature } from './features/scene.ts'
import { upserts } from './features/upserts.ts'
import { writing } from './features/writing.ts'

const groups: Record<string, Feature[]> = {
  Reading: reading,
  Filters: [...filters, ...filterErrors],
  'Order and pages': ordering,
  Embedding: [...embedding, ...embeddedParameters],
  Aggregates: aggregates,
  Writing: [...writing, ...changing],
  Upserts: upserts,
  Functions: [...functions, ...functionResponses],
  'Headers and forms': forms,
  'Where the operator allows rollbacks': rollbacks,
  Errors: errors,
}

t.test('features', async (t) => {
  const runtime = await startRuntime(t)
  const allowing = await startRuntime(t, { allowsRollback: true })
  for (const [group, features] of Object.entries(groups)) {
    t.test(group, async (t) => {
      const scene = await makeScene(features === rollbacks ? allowing : runtime)
      for (const { feature, here, check } of features) {
        await t.test(`${here}: ${feature}`, async (t) => {
          await check(scene(t))
        })
      }
    })
  }

  t.test('are in the documentation as they are here', async (t) => {
    const names = Object.entries(groups).flatMap(([group, features]) =>
      features.map(({ feature }) => `${group}: ${feature}`),
    )
    t.equal(new Set(names).size, names.length, 'each once')
    await checkDocumented(t, 'rest.md', 'test/rest/features.test.ts', table())
  })

  t.same([...runtime.problems, ...allowing.problems], [], 'none of it was an error of ours')
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
