// Violations of a request's schema, by the fields that its caller knows.
import t from 'tap'
import { violationOf } from '#contract/validation-error.ts'

const error = (keyword: string, instancePath: string, params: Record<string, unknown>, message?: string) => ({
  keyword,
  instancePath,
  schemaPath: `#/${keyword}`,
  params,
  ...(message === undefined ? {} : { message }),
})

t.test('A field is named by its whole path', async (t) => {
  t.same(violationOf(error('additionalProperties', '', { additionalProperty: 'plam' })), {
    kind: 'unknown',
    name: 'plam',
  })
  t.same(violationOf(error('additionalProperties', '/fields/0', { additionalProperty: 'typ' })), {
    kind: 'unknown',
    name: 'fields.0.typ',
  })
  t.same(violationOf(error('unevaluatedProperties', '/a', { unevaluatedProperty: 'b' })), {
    kind: 'unknown',
    name: 'a.b',
  })
  t.same(violationOf(error('required', '', { missingProperty: 'name' })), { kind: 'missing', name: 'name' })
  t.same(violationOf(error('required', '/rls_policy', { missingProperty: 'type' })), {
    kind: 'missing',
    name: 'rls_policy.type',
  })
})

t.test('A violation states the requirement of the validator, or the allowed values', async (t) => {
  t.same(violationOf(error('type', '/size', { type: 'integer' }, 'must be integer')), {
    kind: 'invalid',
    name: 'size',
    wanted: 'must be integer',
  })
  t.same(
    violationOf(
      error('enum', '/plan', { allowedValues: ['Free', 'Pro'] }, 'must be equal to one of the allowed values'),
    ),
    { kind: 'invalid', name: 'plan', wanted: 'must be one of Free, Pro' },
  )
  t.same(
    violationOf(error('type', '', { type: 'object' }, 'must be object')),
    { kind: 'invalid', name: '', wanted: 'must be object' },
    'the body itself',
  )
  t.same(violationOf(error('not', '/a', {})), { kind: 'invalid', name: 'a', wanted: 'is invalid' })
  t.same(violationOf(undefined), { kind: 'invalid', name: '', wanted: 'is invalid' })
})
