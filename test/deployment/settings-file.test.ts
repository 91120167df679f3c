// The operator's settings of the control planes on several hosts.
import t from 'tap'
import { readSettings } from '#control-plane/deployment/settings-file.ts'

const own = ['TENANTRY_INSTALLATION']

t.test('Settings are read line by line, without comments', async (t) => {
  const text =
    '# Settings\n\nTENANTRY_AUDIT_DAYS=90\r\n  TENANTRY_RATE_LIMITS=Free=1/2,Pro=3/4 \nTENANTRY_PRICES_FILE=\n'
  t.same(readSettings(text, own), {
    TENANTRY_AUDIT_DAYS: '90',
    TENANTRY_RATE_LIMITS: 'Free=1/2,Pro=3/4',
    TENANTRY_PRICES_FILE: '',
  })
})

t.test('A line that would have no effect, or another one, is rejected with its number', async (t) => {
  const form = 'Line 2 of control-plane.env is not NAME=value, without spaces around the equals sign.'
  const quoted =
    'Line 2 of control-plane.env: the value of TENANTRY_AUDIT_DAYS is in quotes. They would be part of it: remove them.'
  const cases: [line: string, message: string][] = [
    ['export TENANTRY_AUDIT_DAYS=90', form],
    ['TENANTRY_AUDIT_DAYS = 90', form],
    ['TENANTRY_AUDIT_DAYS= 90', form],
    ['TENANTRY_AUDIT_DAYS', form],
    ['tenantry_audit_days=90', form],
    ['TENANTRY_AUDIT_DAYS="90"', quoted],
    ["TENANTRY_AUDIT_DAYS='90'", quoted],
    ['TENANTRY_AUDIT_DAY=90', 'Line 2 of control-plane.env: the control plane has no setting TENANTRY_AUDIT_DAY.'],
    [
      'TENANTRY_INSTALLATION=x',
      'Line 2 of control-plane.env: deploy/setup itself sets TENANTRY_INSTALLATION. Remove the line.',
    ],
  ]
  for (const [line, message] of cases)
    t.throws(() => readSettings(`# Settings\n${line}\n`, own), { name: 'ConfigurationError', message }, line)
})
