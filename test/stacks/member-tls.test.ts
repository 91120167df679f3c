// TLS between the members of a cluster: their configuration, and what a real Postgres does with it.
import { createHash, X509Certificate } from 'node:crypto'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import t from 'tap'
import { clusterServices } from '#control-plane/stacks/cluster-services.ts'
import { memberCertificate } from '#control-plane/stacks/member-tls.ts'
import { clusterSettings, memberPasswords, sharedClusterSettings } from '#control-plane/stacks/patroni-settings.ts'
import { serviceIdentity, setOwner } from '#local/process/unprivileged.ts'
import { query, startPostgres } from '#test/support/postgres.ts'

const etcd = { authority: 'authority', certificate: 'certificate', privateKey: 'key', seed: 's'.repeat(43) }
const cluster = 't_0123456789abcdef0123'
const resources = { memoryBytes: 2 ** 29, cpuMillis: 500, pids: 256 }

interface Configuration {
  bootstrap: { dcs: { member_slots_ttl?: number } }
  postgresql: {
    authentication: Record<string, Record<string, string>>
    parameters: Record<string, string>
    pg_hba: string[]
  }
}

const input = {
  id: cluster,
  image: 'sha256:aa',
  restarts: 0,
  resources,
  etcd,
  settings: clusterSettings(false),
  ownParameters: {},
  routerAlias: 'primary',
  hosts: {},
}
const several = {
  ...input,
  settings: clusterSettings(true),
  hosts: { 'postgres-1': 'a', 'postgres-2': 'b', 'postgres-3': 'c' },
  spansHosts: true,
}
const filesOf = (given: Parameters<typeof clusterServices>[0], name: string): Record<string, string> => {
  const secrets = clusterServices(given).find((service) => service.name === name)?.secrets ?? {}
  return Object.fromEntries(Object.entries(secrets).map(([file, secret]) => [file, secret.reveal()]))
}
const configurationOf = (given: Parameters<typeof clusterServices>[0], name = 'postgres-1') =>
  (JSON.parse(filesOf(given, name)['patroni.yml'] ?? '') as Configuration).postgresql

t.test('The members on one host have the configuration of earlier versions, so that none is replaced', (t) => {
  const files = filesOf({ ...input, spansHosts: false }, 'postgres-1')
  t.same(Object.keys(files), ['patroni.yml', 'etcd-ca.pem'])
  t.equal(
    createHash('sha256')
      .update(files['patroni.yml'] ?? '')
      .digest('hex'),
    '9f8f49adbc4086860d513f40bac42b5c7cdb645261e1a75ef6ae16803177230b',
  )
  t.end()
})

t.test('Only members on several hosts drop the slots of members that have left after a minute', (t) => {
  const settingsOf = (given: Parameters<typeof clusterServices>[0]) =>
    (JSON.parse(filesOf(given, 'postgres-1')['patroni.yml'] ?? '') as Configuration).bootstrap.dcs
  t.equal(settingsOf(several).member_slots_ttl, 60)
  t.notOk('member_slots_ttl' in settingsOf({ ...input, spansHosts: false }))
  t.end()
})

t.test('Members on several hosts accept and open connections to each other with TLS only', (t) => {
  const { authentication, parameters, pg_hba: rules } = configurationOf(several)
  t.same(parameters, {
    unix_socket_directories: '/run/postgresql',
    ssl: 'on',
    ssl_cert_file: '/run/secrets/server.pem',
    ssl_key_file: '/run/secrets/server-key.pem',
    ssl_min_protocol_version: 'TLSv1.3',
  })
  for (const role of ['replication', 'rewind'])
    t.match(authentication[role], {
      sslmode: 'verify-ca',
      sslrootcert: '/run/secrets/server.pem',
      channel_binding: 'disable',
    })
  t.same(Object.keys(authentication['superuser'] ?? {}), ['username'], 'the superuser connects by the socket')
  t.same(rules, [
    'local all,replication postgres peer',
    'local all all reject',
    'hostssl replication replicator samenet scram-sha-256',
    'hostssl postgres rewind samenet scram-sha-256',
    'host all postgres,replicator,rewind all reject',
    'host replication all all reject',
    'host all all all scram-sha-256',
  ])
  t.end()
})

t.test('The members of a cluster have one certificate, which is always the same, and no other cluster has it', (t) => {
  const certificate = (given: typeof several, name: string) => filesOf(given, name)['server.pem']
  const own = certificate(several, 'postgres-1')
  t.equal(certificate(several, 'postgres-3'), own)
  const again = { ...several, etcd: { ...etcd } }
  t.equal(certificate(again, 'postgres-1'), own, 'also after a start of the control plane')
  t.equal(filesOf(again, 'postgres-1')['server-key.pem'], filesOf(several, 'postgres-2')['server-key.pem'])
  t.not(certificate({ ...several, id: 't_ffffffffffffffffffff' }, 'postgres-1'), own)
  t.not(certificate({ ...several, etcd: { ...etcd, seed: 'another' } }, 'postgres-1'), own)
  t.match(new X509Certificate(own ?? '').subjectAltName, /postgres-1/)
  t.end()
})

t.test('Postgres rejects what is not encrypted, and a client another certificate', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-member-tls-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  await chmod(directory, 0o755)
  const files = filesOf(several, 'postgres-1')
  const settings = sharedClusterSettings({})
  const rules = configurationOf({ ...several, settings, superuserPassword: 'test-only' }).pg_hba
  const identity = await serviceIdentity()
  const write = async (name: string, text: string) => {
    await writeFile(join(directory, name), text, { mode: 0o400 })
    await setOwner(join(directory, name), identity)
    return join(directory, name)
  }
  const postgres = await startPostgres({
    ssl: 'on',
    ssl_cert_file: await write('server.pem', files['server.pem'] ?? ''),
    ssl_key_file: await write('server-key.pem', files['server-key.pem'] ?? ''),
    ssl_min_protocol_version: 'TLSv1.3',
    hba_file: await write('pg_hba.conf', rules.map((rule) => `${rule}\n`).join('')),
  })
  t.teardown(() => postgres.stop())
  const passwords = memberPasswords(etcd, cluster)
  await query(postgres.url('postgres'), `create role replicator login replication password '${passwords.replicator}'`)
  await query(postgres.url('postgres'), `create role rewind login password '${passwords.rewind}'`)
  await query(postgres.url('postgres'), 'grant connect on database postgres to rewind')

  const connection = async (role: 'replicator' | 'rewind', ca: string | undefined) => {
    const options = {
      host: '127.0.0.1',
      port: postgres.port,
      user: role,
      password: passwords[role],
      database: 'postgres',
      ...(role === 'replicator' ? { replication: 'true' } : {}),
      ...(ca === undefined ? {} : { ssl: { ca, checkServerIdentity: () => undefined } }),
    }
    const client = new pg.Client(options)
    try {
      await client.connect()
      const statement =
        role === 'replicator'
          ? 'IDENTIFY_SYSTEM'
          : 'select version as tls from pg_stat_ssl where pid = pg_backend_pid()'
      return (await client.query<Record<string, string>>(statement)).rows[0]
    } finally {
      await client.end().catch(() => undefined)
    }
  }
  const { certificate } = memberCertificate(etcd, cluster)
  t.match(await connection('replicator', certificate), { timeline: 1 })
  t.match(await connection('rewind', certificate), { tls: 'TLSv1.3' })
  const other = memberCertificate(etcd, 't_ffffffffffffffffffff').certificate
  for (const role of ['replicator', 'rewind'] as const) {
    await t.rejects(connection(role, undefined), /pg_hba\.conf rejects .*no encryption/)
    await t.rejects(connection(role, other), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  }
})
