// Runs each complete example in the doc comments of the published PostgREST client, unmodified, and compares the
// response with the documented one. This file also writes the block in docs/rest.md (TENANTRY_WRITE_DOCS=1).
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { checkDocumented } from '#test/support/documented.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { exceptions } from './examples/exceptions.ts'
import { nameOf, readExamples, type CompleteExample } from './examples/read-examples.ts'
import { compared, runExample } from './examples/run-example.ts'

t.test('The PostgREST client', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  const { version, all, complete } = await readExamples()
  let asDocumented = 0

  for (const example of complete) {
    const exception = exceptions.get(nameOf(example))
    if (exception === undefined) {
      t.test(nameOf(example), async (t) => {
        if (await check(t, tenant, example)) asDocumented++
      })
      continue
    }
    t.test(`${nameOf(example)}, except that ${exception.reason}`, async (t) => {
      t.notOk(await holds(tenant, example), 'the example still differs')
      await check(t, tenant, exception.instead(example))
    })
  }

  t.test('Every exception belongs to an example', async (t) => {
    const names = new Set(complete.map(nameOf))
    t.same(
      [...exceptions.keys()].filter((name) => !names.has(name)),
      [],
    )
  })

  t.test('The score in the documentation matches the examples', async (t) => {
    const wanted = [
      `Of the ${all.length} examples in the doc comments of \`@supabase/postgrest-js\` ${version}, `,
      `${complete.length} are complete: SQL, a call, its response.\n`,
      `${asDocumented} of the ${complete.length} give that response here, ${exceptions.size} do not:\n\n`,
      '| example | why not |\n| --- | --- |\n',
      ...[...exceptions].map(([name, { reason }]) => `| ${name} | ${reason} |\n`),
    ].join('')
    await checkDocumented(t, 'rest.md', 'test/rest/examples.rotated.test.ts', wanted)
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})

/** Compares the response with the documented one and returns the difference. */
async function check(t: Test, tenant: TestTenant, example: CompleteExample): Promise<boolean> {
  const checks = (await runExample(tenant, example)).map((response) => {
    const { wanted, got } = compared(example.response, response)
    return t.strictSame(got, wanted, 'the response is the documented one', { sql: example.sql, call: example.call })
  })
  return checks.every(Boolean)
}

async function holds(tenant: TestTenant, example: CompleteExample): Promise<boolean> {
  const responses = await runExample(tenant, example).catch(() => [])
  return (
    responses.length > 0 &&
    responses.every((response) => {
      const { wanted, got } = compared(example.response, response)
      return isDeepStrictEqual(got, wanted)
    })
  )
}
