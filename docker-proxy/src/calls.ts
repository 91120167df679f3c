// The calls that our own client makes (engines/docker/), and with each what is asked of it. All others are refused. Pure.
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import {
  containersInShort,
  imageInShort,
  only,
  ownContainer,
  ownNetwork,
  ownNetworks,
  ownVolume,
  ownVolumes,
  type Shown,
} from './responses.ts'
import { checkedContainer } from './container-rules.ts'
import type { Claim } from './claims.ts'
import type { ProxyRules } from './proxy-rules.ts'
import {
  checkedCommand,
  checkedConnection,
  checkedDisconnection,
  checkedLimits,
  checkedNetwork,
  checkedStart,
  checkedVolume,
  type Checked,
} from './object-rules.ts'
import { Rejected } from './rejected.ts'
import { readTarget, type Target } from './request-target.ts'

export interface Call {
  method: string
  version: string | undefined
  segments: readonly string[]
  query: Readonly<Record<string, string>>
  /** The object at `segments[1]`; its id takes the place of its name. */
  subject: Claim | undefined
  /** Networks that the query names. */
  networks: readonly string[]
  /** `none`: a body of nothing, or of `{}`. */
  body: 'none' | 'archive' | { check: (body: unknown) => Checked }
  /** A JSON answer as it may be shown; bytes as they come; events; or the connection itself. */
  response: Shown | 'bytes' | 'events' | 'connection'
}

type Test = RegExp | ((text: string, rules: ProxyRules) => boolean)

interface Rule {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** `*` is the subject's name. */
  path: string
  subject?: (name: string) => Claim
  query?: Readonly<Record<string, Test>>
  /** Must all be there. */
  needs?: readonly string[]
  body?: 'archive' | ((body: unknown, rules: ProxyRules, target: Target) => Checked)
  response?: Call['response']
}

const yes = /^true$/
const flag = /^(?:true|false)$/
const whole = /^\d{1,9}$/

const usable = (name: string): Claim => ({ kind: 'container', name, may: 'be used' })
const startable = (name: string): Claim => ({ kind: 'container', name, may: 'start' })
const helper = (name: string): Claim => ({ kind: 'container', name, may: 'hold files' })
const network = (name: string): Claim => ({ kind: 'network', name })
const volume = (name: string): Claim => ({ kind: 'volume', name, may: 'be removed' })
const command = (name: string): Claim => ({ kind: 'exec', name })

const nothing: Shown = () => ({})

const rules: readonly Rule[] = [
  { method: 'GET', path: '/_ping', response: 'bytes' },
  { method: 'GET', path: '/version', response: only('Version', 'ApiVersion', 'MinAPIVersion') },
  {
    method: 'GET',
    path: '/info',
    response: only('Name', 'MemTotal', 'NCPU', 'CgroupVersion', 'SecurityOptions', 'Warnings', 'DockerRootDir'),
  },
  { method: 'GET', path: '/images/*/json', response: imageInShort },
  { method: 'GET', path: '/events', query: { filters: wantsKnownEvents }, needs: ['filters'], response: 'events' },
  { method: 'GET', path: '/system/df', query: { type: /^volume$/ }, needs: ['type'], response: ownVolumes },

  {
    method: 'GET',
    path: '/containers/json',
    query: { all: yes, filters: (text, own) => requestsOwn(text, own) || requestsMembers(text) },
    needs: ['filters'],
    response: containersInShort,
  },
  {
    method: 'POST',
    path: '/containers/create',
    query: { name: /./ },
    needs: ['name'],
    body: (body, own, { query: { name = '' } }) => checkedContainer(name, body, own),
    response: only('Id', 'Warnings'),
  },
  { method: 'GET', path: '/containers/*/json', response: ownContainer },
  { method: 'POST', path: '/containers/*/start', subject: startable, response: nothing },
  { method: 'POST', path: '/containers/*/unpause', subject: startable, response: nothing },
  { method: 'POST', path: '/containers/*/stop', subject: usable, query: { t: whole }, response: nothing },
  { method: 'POST', path: '/containers/*/update', subject: usable, body: checkedLimits, response: only('Warnings') },
  { method: 'DELETE', path: '/containers/*', subject: usable, query: { force: flag, v: flag }, response: nothing },
  {
    method: 'GET',
    path: '/containers/*/logs',
    subject: usable,
    query: { stdout: yes, stderr: yes, timestamps: yes, follow: flag, tail: whole, since: /^\d{1,12}(?:\.\d{1,9})?$/ },
    response: 'bytes',
  },
  {
    method: 'GET',
    path: '/containers/*/stats',
    subject: usable,
    query: { stream: /^false$/, 'one-shot': yes },
    needs: ['stream'],
    response: only('cpu_stats', 'memory_stats'),
  },
  {
    method: 'GET',
    path: '/containers/*/archive',
    subject: helper,
    query: { path: /^\/tenantry\/files$/ },
    needs: ['path'],
    response: 'bytes',
  },
  {
    method: 'PUT',
    path: '/containers/*/archive',
    subject: helper,
    query: { path: /^\/tenantry$/ },
    needs: ['path'],
    body: 'archive',
    response: nothing,
  },
  { method: 'POST', path: '/containers/*/exec', subject: startable, body: checkedCommand, response: only('Id') },
  { method: 'POST', path: '/exec/*/start', subject: command, body: checkedStart, response: 'connection' },
  { method: 'GET', path: '/exec/*/json', subject: command, response: only('Running', 'ExitCode') },

  {
    method: 'GET',
    path: '/networks',
    query: { filters: (text, own) => requestsOwn(text, own) || requestsName(text) },
    needs: ['filters'],
    response: ownNetworks,
  },
  { method: 'GET', path: '/networks/*', response: ownNetwork },
  { method: 'POST', path: '/networks/create', body: checkedNetwork, response: only('Id', 'Warning') },
  { method: 'POST', path: '/networks/*/connect', subject: network, body: checkedConnection, response: nothing },
  {
    method: 'POST',
    path: '/networks/*/disconnect',
    body: (body, _own, { segments }) => checkedDisconnection(body, segments[1] ?? ''),
    response: nothing,
  },
  { method: 'DELETE', path: '/networks/*', subject: network, response: nothing },

  {
    method: 'GET',
    path: '/volumes',
    needs: ['filters'],
    response: ownVolumes,
    query: { filters: (text, own) => requestsOwn(text, own) || requestsNamesakes(text) },
  },
  { method: 'GET', path: '/volumes/*', response: ownVolume },
  { method: 'POST', path: '/volumes/create', body: checkedVolume, response: ownVolume },
  { method: 'DELETE', path: '/volumes/*', subject: volume, response: nothing },
]

/** Without them the Engine's answer may mean something else, or there is none. */
const withoutVersion = ['/_ping', '/version']

/** @throws Refused */
export function readCall(method: string | undefined, url: string | undefined, own: ProxyRules): Call {
  const target = readTarget(url ?? '')
  const path = `/${target.segments.join('/')}`
  const rule = rules.find((candidate) => candidate.method === method && matches(candidate.path, target))
  if (rule === undefined) throw new Rejected(`${method ?? ''} ${path} is no call of Tenantry's`)
  if (target.version === undefined && !withoutVersion.includes(rule.path))
    throw new Rejected('the path names no API version')
  checkQuery(rule, target.query, own)
  const { body } = rule
  return {
    method: rule.method,
    version: target.version,
    segments: target.segments,
    query: target.query,
    subject: rule.subject?.(target.segments[1] ?? ''),
    networks: readFilter(target.query['filters'] ?? '{}')['network'] ?? [],
    body: body === undefined ? 'none' : body === 'archive' ? body : { check: (given) => body(given, own, target) },
    response: rule.response ?? 'bytes',
  }
}

/** Names hold no slash, but for images' references. */
const nameText = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/

function matches(pattern: string, { segments }: Target): boolean {
  const wanted = pattern.slice(1).split('/')
  if (wanted.length !== segments.length) return false
  return wanted.every((part, at) => {
    const segment = segments[at] ?? ''
    return part === '*' ? wanted[0] === 'images' || nameText.test(segment) : part === segment
  })
}

function checkQuery({ query = {}, needs = [] }: Rule, given: Readonly<Record<string, string>>, own: ProxyRules): void {
  for (const [name, text] of Object.entries(given)) {
    const test = Object.hasOwn(query, name) ? query[name] : undefined
    const passes = test instanceof RegExp ? test.test(text) : test?.(text, own)
    if (passes !== true) throw new Rejected(`the query's ${name} is not one of Tenantry's`)
  }
  const missing = needs.find((name) => !Object.hasOwn(given, name))
  if (missing !== undefined) throw new Rejected(`the query has no ${missing}`)
}

const Filter = Type.Record(Type.String(), Type.Array(Type.String(), { minItems: 1 }))

function readFilter(text: string): Readonly<Record<string, readonly string[]>> {
  let filter: unknown
  try {
    filter = JSON.parse(text)
  } catch (cause) {
    throw new Rejected('the filter is no JSON', { cause })
  }
  if (!Value.Check(Filter, filter)) throw new Rejected('the filter is not understood')
  return filter
}

function hasOnly(filter: object, ...names: readonly string[]): boolean {
  return Object.keys(filter).every((name) => names.includes(name))
}

function requestsOwn(text: string, { installation }: ProxyRules): boolean {
  const filter = readFilter(text)
  const { label = [] } = filter
  const isStack = (one: string) => /^tenantry\.stack=[a-z0-9_-]+$/.test(one)
  return (
    hasOnly(filter, 'label') &&
    label.includes(`tenantry.installation=${installation}`) &&
    label.every((one) => one === `tenantry.installation=${installation}` || isStack(one))
  )
}

/** Of the members only what everybody on a network sees is shown. */
function requestsMembers(text: string): boolean {
  const filter = readFilter(text)
  return hasOnly(filter, 'network') && (filter['network'] ?? []).length > 0
}

function requestsName(text: string): boolean {
  const filter = readFilter(text)
  return hasOnly(filter, 'name') && (filter['name'] ?? []).length === 1
}

/** Volumes named like ours, which the Engine makes without a label in the place of one that is gone. */
function requestsNamesakes(text: string): boolean {
  const filter = readFilter(text)
  return hasOnly(filter, 'name') && (filter['name'] ?? []).every((name) => /^tenantry-(?:[a-z0-9_-]+-)?$/.test(name))
}

/** None of those that tell what runs inside of containers. */
const actions = [
  'create',
  'start',
  'die',
  'stop',
  'kill',
  'oom',
  'pause',
  'unpause',
  'restart',
  'rename',
  'update',
  'health_status',
  'destroy',
  'connect',
  'disconnect',
  'remove',
]

function wantsKnownEvents(text: string): boolean {
  const filter = readFilter(text)
  const { type = [], event = [] } = filter
  const isWithin = (given: readonly string[], known: readonly string[]) =>
    given.length > 0 && given.every((one) => known.includes(one))
  return (
    hasOnly(filter, 'type', 'event') && isWithin(type, ['container', 'network', 'volume']) && isWithin(event, actions)
  )
}
