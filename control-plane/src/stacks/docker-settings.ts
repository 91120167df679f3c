// The operator's configuration of a region on a Docker Engine.
import { Type, type Static } from 'typebox'

const Image = Type.String({ minLength: 1, description: 'name:tag, name@sha256:… or sha256:…' })

/** Settings of a region on a Docker Engine, in the operator's file of regions. */
export const DockerSettings = Type.Object(
  {
    /** Address: `unix:///var/run/docker.sock`, `tcp://host:2376` with TLS, or `ssh://user@host`. */
    host: Type.String({ pattern: '^(unix|tcp|ssh)://' }),
    /** Directory of ca.pem, cert.pem and key.pem; required for `tcp://`. */
    tls_directory: Type.Optional(Type.String()),
    /** IPv4 range of all its networks, at least a /23. Nothing else on the host, and no other region, may use it. */
    network_range: Type.String(),
    images: Type.Object(
      { postgres: Image, runtime: Image, gateway: Type.Optional(Image) },
      { additionalProperties: false },
    ),
    /**
     * URL at which the region's gateway and shared runtimes reach the control plane; for an engine on another host, that
     * host's address on the region's network.
     */
    control_url: Type.String({ pattern: '^https?://' }),
    /** An existing gateway (docker-compose), or the host's address and ports of the control plane's own. */
    gateway: Type.Union([
      Type.Object({ container: Type.String({ minLength: 1 }) }, { additionalProperties: false }),
      Type.Object(
        {
          host_address: Type.String(),
          port: Type.Integer({ minimum: 1, maximum: 65_535 }),
          postgres_port: Type.Integer({ minimum: 1, maximum: 65_535 }),
        },
        { additionalProperties: false },
      ),
    ]),
    /** Container of the control plane, which is attached to the region's network; absent if it runs on the host. */
    control_container: Type.Optional(Type.String({ minLength: 1 })),
    /** Number of runtimes that serve the tenants without a database of their own. */
    shared_runtimes: Type.Optional(Type.Integer({ minimum: 1, maximum: 16 })),
    /** Number of database stacks that are created in advance, so that tenants start faster. */
    warm_stacks: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
    /** Seconds without a request after which a tenant's own stack is stopped; 0 or absent for never. */
    pause_after_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 30 * 86_400 })),
  },
  { additionalProperties: false },
)
export type DockerSettings = Static<typeof DockerSettings>
