// The settings of all parts: listed in one module, documented, and complete for containers.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  controlPlaneSettings,
  developmentNames,
  dockerProxySettings,
  gatewaySettings,
  rejectUnknownSettings,
  runtimeSettings,
  type Settings,
} from '@tenantry/contract'
import t from 'tap'
import { readConfig as readControlPlaneConfig } from '#control-plane/config.ts'
import { readProxyConfig } from '#docker-proxy/config.ts'
import { passedSettings } from '#local/passed-settings.ts'
import { readConfig as readGatewayConfig } from '#gateway/config.ts'
import { readConfig as readRuntimeConfig } from '#tenant-runtime/config.ts'
import { checkDocumented } from '#test/support/documented.ts'

const project = new URL('../../', import.meta.url).pathname
const read = (path: string) => readFileSync(join(project, path), 'utf8')
const namesIn = (text: string) => new Set(text.match(/\bTENANTRY_[A-Z0-9_]*[A-Z0-9]\b/g))

const parts: [string, Settings, (variables: NodeJS.ProcessEnv) => unknown][] = [
  ['control plane', controlPlaneSettings, readControlPlaneConfig],
  ['gateway', gatewaySettings, readGatewayConfig],
  ['runtime', runtimeSettings, readRuntimeConfig],
  ['docker-proxy', dockerProxySettings, readProxyConfig],
]

t.test('Every part rejects an unknown setting, and suggests the intended one', async (t) => {
  for (const [part, settings, readConfig] of parts) {
    t.throws(
      () => readConfig({ TENANTRY_LOG_LEVL: 'info' }),
      { message: 'Unknown setting TENANTRY_LOG_LEVL. Did you mean TENANTRY_LOG_LEVEL?' },
      part,
    )
    t.throws(
      () => readConfig({ TENANTRY_QQQQQQQQQQ: '1' }),
      { message: `Unknown setting TENANTRY_QQQQQQQQQQ. Allowed: ${Object.keys(settings).sort().join(', ')}.` },
      part,
    )
  }
  t.doesNotThrow(
    () =>
      rejectUnknownSettings(['TENANTRY_A'], { TENANTRY_A: 'x', TENANTRY_EMPTY: '', TENANTRY_SOAK: 'full', OTHER: 'x' }),
    'settings of tests, empty ones and those of other programs',
  )
})

t.test('The local start passes on what operators may set, with absolute paths', async (t) => {
  const given = {
    TENANTRY_REST_ROLLBACK: '1',
    TENANTRY_PRICES_FILE: 'prices.json',
    TENANTRY_BACKUPS: 'backups',
    TENANTRY_TRUSTED_PROXIES: '10.0.0.1',
    TENANTRY_FAILPOINTS: 'x=kill',
    TENANTRY_SEED: '1',
  }
  t.same(passedSettings(given, '/srv'), {
    controlPlane: {
      TENANTRY_PRICES_FILE: '/srv/prices.json',
      TENANTRY_BACKUPS: '/srv/backups',
      TENANTRY_FAILPOINTS: 'x=kill',
    },
    gateway: { TENANTRY_TRUSTED_PROXIES: '10.0.0.1' },
    runtime: { TENANTRY_REST_ROLLBACK: '1' },
  })
})

t.test('Each container gets only settings of its part', async (t) => {
  const services = read('docker-compose.yml').split(/^ {2}(?=[a-z-]+:\n)/m)
  const given = (name: string) =>
    [...(services.find((text) => text.startsWith(`${name}:\n`)) ?? '').matchAll(/^ {6}(TENANTRY_\w+):/gm)].map(
      ([, setting]) => setting ?? '',
    )
  const inImage = (name: string) => [...namesIn(read(`images/${name}/Dockerfile`).replace(/grep TENANTRY_ /g, ''))]
  const containers: [string, string[], Settings][] = [
    ['control-plane', [...given('control-plane'), ...inImage('control-plane')], controlPlaneSettings],
    ['docker-proxy', [...given('docker-proxy'), ...inImage('control-plane')], dockerProxySettings],
    [
      'gateway',
      [...given('gateway'), ...inImage('gateway'), ...namesIn(read('control-plane/src/stacks/tenant-services.ts'))],
      gatewaySettings,
    ],
    [
      'tenant-runtime',
      [
        ...inImage('tenant-runtime'),
        ...namesIn(read('control-plane/src/stacks/tenant-services.ts')),
        ...namesIn(read('control-plane/src/stacks/stack-for.ts')),
      ],
      runtimeSettings,
    ],
  ]
  for (const [name, names, settings] of containers) {
    t.ok(names.length > 3, `${name} gets settings`)
    t.same(
      names.filter((setting) => !(setting in settings)),
      [],
      name,
    )
  }
})

t.test('The documentation names every setting, and no other', async (t) => {
  const table = (settings: Settings, setBy: 'operator' | 'launcher', part: string) =>
    Object.entries(settings).flatMap(([name, setting]) =>
      setting.setBy === setBy
        ? [`| \`${name}\` | ${part} | ${setting.description} | ${setting.fallback ?? ''} |\n`]
        : [],
    )
  const head = '| variable | part | value | default |\n|---|---|---|---|\n'
  const rows = (setBy: 'operator' | 'launcher') =>
    parts.flatMap(([part, settings]) => table(settings, setBy, part)).join('')
  const launcher =
    '\nDo not set these. `npm start`, Compose and the control plane (for containers) set them to fit the other parts:\n\n'
  await checkDocumented(
    t,
    'operate/configuration.md',
    'test/contract/settings.test.ts',
    `${head}${rows('operator')}${launcher}${head}${rows('launcher')}`,
  )

  const ofCompose = namesIn(`${read('docker-compose.yml')}${read('deploy/setup')}`)
  const ofFunctions = namesIn(globSync('tenant-runtime/src/functions/**/*.ts', { cwd: project }).map(read).join('\n'))
  const ofCommandLine = namesIn(globSync('cli/src/**/*.ts', { cwd: project }).map(read).join('\n'))
  const known = new Set([
    ...parts.flatMap(([, settings]) => Object.keys(settings)),
    ...developmentNames,
    ...ofCompose,
    ...ofFunctions,
    ...ofCommandLine,
  ])
  for (const page of ['README.md', ...globSync(['docs/*.md', 'docs/operate/*.md'], { cwd: project })]) {
    t.same(
      [...namesIn(read(page))].filter((name) => !known.has(name)),
      [],
      page,
    )
  }
})
