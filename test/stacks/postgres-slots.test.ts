// The connection slots of a dedicated Postgres: clients that never log in leave enough for all others.
import t from 'tap'
import { homeConnectionLimits } from '#control-plane/homes/home-sql.ts'
import { stackFor } from '#control-plane/stacks/stack-for.ts'
import { defaultLimits } from '#gateway/limits.ts'

const size = { memoryBytes: 2 ** 29, cpuMillis: 500, pids: 256 }
const { services } = stackFor(
  {
    id: 't_0123456789abcdef0123',
    isolation: 'database-per-tenant',
    running: true,
    hasHome: true,
    resources: { postgres: size, runtime: size },
    restarts: 0,
    images: { postgres: 'sha256:aa', runtime: 'sha256:bb' },
    subnet: '10.1.1.0/28',
  },
  { gateways: [{ container: 'the-gateway' }], internalToken: 'x'.repeat(32) },
)
const settings = new Map(
  services
    .find(({ name }) => name === 'postgres')
    ?.command.map((text) => {
      const [name = '', value = ''] = text.split('=')
      return [name, value]
    }),
)

/** The slots that PostgreSQL reserves for superusers, and those of a backup reader (control-plane/src/backups/reader-login.ts). */
const superuserSlots = 3
const readerSlots = 8

t.test('Logins in progress take slots from the first byte, so there may be only as many as remain', async (t) => {
  const runtime = Number(services.find(({ name }) => name === 'runtime')?.environment['TENANTRY_MAX_CONNECTIONS'])
  const { admin, ddl } = homeConnectionLimits
  const remaining = Number(settings.get('max_connections')) - runtime - admin - ddl - readerSlots - superuserSlots
  t.ok(defaultLimits.sqlLoginsPerTenant <= remaining, `${remaining} remain`)
  t.ok(defaultLimits.sqlLoginsPerTenantAndAddress >= admin, 'one client may open all its sessions at once')
  t.ok(defaultLimits.sqlSessionsPerTenant >= admin)
})

t.test('Postgres gives up a login when the Postgres proxy does', async (t) => {
  t.equal(settings.get('authentication_timeout'), `${defaultLimits.loginTimeout / 1000}s`)
})
