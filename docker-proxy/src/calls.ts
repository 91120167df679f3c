// The calls of the control plane's own client (engines/docker/), with the requirements of each. All other calls are
// rejected. Pure.
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import {
  containerSummaries,
  imageSummary,
  only,
  ownContainer,
  ownNetwork,
  ownNetworks,
  ownVolume,
  ownVolumes,
  type ResponseFilter,
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

/** A call that was read and is allowed, if its requirements are met. */
export interface Call {
  method: string
  version: string | undefined
  segments: readonly string[]
  query: Readonly<Record<string, string>>
  /** The object at `segments[1]`. Its ID replaces its name. */
  subject: Claim | undefined
  /** Networks that the query names. */
  networks: readonly string[]
  /** Allowed body; `none` is an empty one or `{}`. */
  body: 'none' | 'archive' | { check: (body: unknown) => Checked }
  /** Form of the response: filtered JSON, raw bytes, events, or the connection itself. */
  response: ResponseFilter | 'bytes' | 'events' | 'connection'
}

type ParameterTest = RegExp | ((text: string, rules: ProxyRules) => boolean)

interface Rule {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Path of the call, in which `*` is the subject's name. */
  path: string
  subject?: (name: string) => Claim
  query?: Readonly<Record<string, ParameterTest>>
  /** Required query parameters. */
  needs?: readonly string[]
  body?: 'archive' | ((body: unknown, rules: ProxyRules, target: Target) => Checked)
  response?: Call['response']
}

const trueOnly = /^true$/
const flag = /^(?:true|false)$/
const wholeNumber = /^\d{1,9}$/

const usable = (name: string): Claim => ({ kind: 'container', name, may: 'be used' })
const startable = (name: string): Claim => ({ kind: 'container', name, may: 'start' })
const helper = (name: string): Claim => ({ kind: 'container', name, may: 'hold files' })
const network = (name: string): Claim => ({ kind: 'network', name })
const volume = (name: string): Claim => ({ kind: 'volume', name, may: 'be removed' })
const command = (name: string): Claim => ({ kind: 'exec', name })

const noFields: ResponseFilter = () => ({})

const rules: readonly Rule[] = [
  { method: 'GET', path: '/_ping', response: 'bytes' },
  { method: 'GET', path: '/version', response: only('Version', 'ApiVersion', 'MinAPIVersion') },
  {
    method: 'GET',
    path: '/info',
    response: only('Name', 'MemTotal', 'NCPU', 'CgroupVersion', 'SecurityOptions', 'Warnings', 'DockerRootDir'),
  },
  { method: 'GET', path: '/images/*/json', response: imageSummary },
  { method: 'GET', path: '/events', query: { filters: selectsKnownEvents }, needs: ['filters'], response: 'events' },
  { method: 'GET', path: '/system/df', query: { type: /^volume$/ }, needs: ['type'], response: ownVolumes },

  {
    method: 'GET',
    path: '/containers/json',
    query: { all: trueOnly, filters: (text, own) => selectsOwn(text, own) || selectsMembers(text) },
    needs: ['filters'],
    response: containerSummaries,
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
  { method: 'POST', path: '/containers/*/start', subject: startable, response: noFields },
  { method: 'POST', path: '/containers/*/unpause', subject: startable, response: noFields },
  { method: 'POST', path: '/containers/*/stop', subject: usable, query: { t: wholeNumber }, response: noFields },
  { method: 'POST', path: '/containers/*/update', subject: usable, body: checkedLimits, response: only('Warnings') },
  { method: 'DELETE', path: '/containers/*', subject: usable, query: { force: flag, v: flag }, response: noFields },
  {
    method: 'GET',
    path: '/containers/*/logs',
    subject: usable,
    query: {
      stdout: trueOnly,
      stderr: trueOnly,
      timestamps: trueOnly,
      follow: flag,
      tail: wholeNumber,
      since: /^\d{1,12}(?:\.\d{1,9})?$/,
    },
    response: 'bytes',
  },
  {
    method: 'GET',
    path: '/containers/*/stats',
    subject: usable,
    query: { stream: /^false$/, 'one-shot': trueOnly },
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
    response: noFields,
  },
  { method: 'POST', path: '/containers/*/exec', subject: startable, body: checkedCommand, response: only('Id') },
  { method: 'POST', path: '/exec/*/start', subject: command, body: checkedStart, response: 'connection' },
  { method: 'GET', path: '/exec/*/json', subject: command, response: only('Running', 'ExitCode') },

  {
    method: 'GET',
    path: '/networks',
    query: { filters: (text, own) => selectsOwn(text, own) || selectsName(text) },
    needs: ['filters'],
    response: ownNetworks,
  },
  { method: 'GET', path: '/networks/*', response: ownNetwork },
  { method: 'POST', path: '/networks/create', body: checkedNetwork, response: only('Id', 'Warning') },
  { method: 'POST', path: '/networks/*/connect', subject: network, body: checkedConnection, response: noFields },
  {
    method: 'POST',
    path: '/networks/*/disconnect',
    body: (body, _own, { segments }) => checkedDisconnection(body, segments[1] ?? ''),
    response: noFields,
  },
  { method: 'DELETE', path: '/networks/*', subject: network, response: noFields },

  {
    method: 'GET',
    path: '/volumes',
    needs: ['filters'],
    response: ownVolumes,
    query: { filters: (text, own) => selectsOwn(text, own) || selectsNamesakes(text) },
  },
  { method: 'GET', path: '/volumes/*', response: ownVolume },
  { method: 'POST', path: '/volumes/create', body: checkedVolume, response: ownVolume },
  { method: 'DELETE', path: '/volumes/*', subject: volume, response: noFields },
]

/** Paths of calls without a version. Other calls need one, because without it the Engine's response may differ. */
const unversionedPaths = ['/_ping', '/version']

/** Reads a call. @throws Rejected */
export function readCall(method: string | undefined, url: string | undefined, own: ProxyRules): Call {
  const target = readTarget(url ?? '')
  const path = `/${target.segments.join('/')}`
  const rule = rules.find((candidate) => candidate.method === method && matches(candidate.path, target))
  if (rule === undefined) throw new Rejected(`${method ?? ''} ${path} is not a call of Tenantry`)
  if (target.version === undefined && !unversionedPaths.includes(rule.path))
    throw new Rejected('the path has no API version')
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

/** Pattern of a name. Only images' references contain slashes. */
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
    if (passes !== true) throw new Rejected(`the query parameter ${name} is not allowed`)
  }
  const missing = needs.find((name) => !Object.hasOwn(given, name))
  if (missing !== undefined) throw new Rejected(`the query parameter ${missing} is missing`)
}

const Filter = Type.Record(Type.String(), Type.Array(Type.String(), { minItems: 1 }))

function readFilter(text: string): Readonly<Record<string, readonly string[]>> {
  let filter: unknown
  try {
    filter = JSON.parse(text)
  } catch (cause) {
    throw new Rejected('the filter is not valid JSON', { cause })
  }
  if (!Value.Check(Filter, filter)) throw new Rejected('the filter has an unknown form')
  return filter
}

function hasOnly(filter: object, ...names: readonly string[]): boolean {
  return Object.keys(filter).every((name) => names.includes(name))
}

function selectsOwn(text: string, { installation }: ProxyRules): boolean {
  const filter = readFilter(text)
  const { label = [] } = filter
  const isStack = (one: string) => /^tenantry\.stack=[a-z0-9_-]+$/.test(one)
  return (
    hasOnly(filter, 'label') &&
    label.includes(`tenantry.installation=${installation}`) &&
    label.every((one) => one === `tenantry.installation=${installation}` || isStack(one))
  )
}

/**
 * Whether a filter selects a network's members. The response contains only what all containers on the network can see.
 */
function selectsMembers(text: string): boolean {
  const filter = readFilter(text)
  return hasOnly(filter, 'network') && (filter['network'] ?? []).length > 0
}

function selectsName(text: string): boolean {
  const filter = readFilter(text)
  return hasOnly(filter, 'name') && (filter['name'] ?? []).length === 1
}

/**
 * Whether a filter selects volumes named like Tenantry's, which the Engine creates without a label if a volume is gone.
 */
function selectsNamesakes(text: string): boolean {
  const filter = readFilter(text)
  return hasOnly(filter, 'name') && (filter['name'] ?? []).every((name) => /^tenantry-(?:[a-z0-9_-]+-)?$/.test(name))
}

/** Actions of events, without those of programs inside containers. */
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

function selectsKnownEvents(text: string): boolean {
  const filter = readFilter(text)
  const { type = [], event = [] } = filter
  const isWithin = (given: readonly string[], known: readonly string[]) =>
    given.length > 0 && given.every((one) => known.includes(one))
  return (
    hasOnly(filter, 'type', 'event') && isWithin(type, ['container', 'network', 'volume']) && isWithin(event, actions)
  )
}
