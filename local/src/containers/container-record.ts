// The stored record of a program: its specification, and whether it should run.
import { Type, type Static } from 'typebox'
import { restartPolicy } from '../../../control-plane/src/engines/index.ts'

const Text = Type.String()
const Whole = Type.Integer({ minimum: 0 })

/** Labels of an object of Tenantry. */
export const LabelsForm = Type.Object(
  { installation: Text, stack: Text, service: Type.Optional(Text), spec: Type.Optional(Text) },
  { additionalProperties: false },
)

/** Owner of the objects that a call may see. */
export const OwnershipForm = Type.Object(
  { installation: Text, stack: Type.Optional(Text) },
  { additionalProperties: false },
)

/** Limits of a program. */
const ResourcesForm = Type.Object(
  { memoryBytes: Whole, cpuMillis: Whole, pids: Whole },
  { additionalProperties: false },
)

/** Changes of a program's limits. */
export const LimitChangesForm = Type.Object(
  {
    memoryBytes: Type.Optional(Whole),
    cpuMillis: Type.Optional(Whole),
    pids: Type.Optional(Whole),
    restartPolicy: Type.Optional(Type.Literal(restartPolicy)),
  },
  { additionalProperties: false },
)

/** A network to be created, which is a part of the loopback addresses. */
export const NetworkForm = Type.Object(
  {
    name: Text,
    labels: LabelsForm,
    subnet: Type.String({ pattern: '^127\\.[0-9.]+/[0-9]{1,2}$' }),
    internal: Type.Boolean(),
    hostAddress: Type.Boolean(),
  },
  { additionalProperties: false },
)

/** A volume to be created. */
export const VolumeForm = Type.Object({ name: Text, labels: LabelsForm }, { additionalProperties: false })

/** A program to be created, with the names that a container has. */
export const ContainerForm = Type.Object(
  {
    name: Text,
    labels: LabelsForm,
    image: Text,
    command: Type.Array(Text),
    // Root starts the programs that give up its rights with these variables, so no linker or interpreter may read one.
    environment: Type.Record(Type.String({ pattern: '^TENANTRY_[A-Z0-9_]+$' }), Text, { additionalProperties: false }),
    user: Text,
    volumes: Type.Array(Type.Object({ volume: Text, path: Text, readOnly: Type.Boolean() })),
    scratch: Type.Record(Text, Text),
    networks: Type.Array(
      Type.Object({
        network: Text,
        aliases: Type.Array(Text),
        address: Type.Optional(Type.String({ pattern: '^127\\.[0-9.]+$' })),
      }),
    ),
    published: Type.Array(Type.Never(), { maxItems: 0 }),
    health: Type.Object({
      command: Type.Array(Text),
      intervalSeconds: Whole,
      timeoutSeconds: Whole,
      retries: Whole,
      startSeconds: Whole,
    }),
    resources: ResourcesForm,
    stopSeconds: Whole,
  },
  { additionalProperties: false },
)

/** The stored record of a program. */
export const ContainerRecord = Type.Object({
  id: Text,
  spec: ContainerForm,
  /** Number of its operating-system user. */
  user: Whole,
  /** Whether it should run, also after the next start of the installation. */
  isStarted: Type.Boolean(),
  startedAt: Type.Optional(Text),
  /** Absent in records of earlier versions. */
  createdAt: Type.Optional(Text),
  exitCode: Type.Integer(),
})
export type ContainerRecord = Static<typeof ContainerRecord>
