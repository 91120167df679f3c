// The types of the operators' API. `npm run update:client` generates this file from the control plane's OpenAPI document.
export interface paths {
    "/v1/console-sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List console sessions, oldest first; those that ended up to a week ago, too */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `next_cursor` of the previous page */
                    cursor?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            console_sessions: {
                                id: string;
                                platform_key_id: string;
                                /** @description The client's address at sign-in */
                                address: string;
                                user_agent: string;
                                /** @description ISO 8601, UTC */
                                created_at: string;
                                /** @description ISO 8601, UTC */
                                seen_at: string;
                                /** @description When it ends even if it is used; ISO 8601, UTC */
                                expires_at: string;
                                /** @description When it ends without a further request; ISO 8601, UTC */
                                idle_expires_at: string;
                                revoked_at: string | null;
                            }[];
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        put?: never;
        /**
         * Sign in to the console with a platform key
         * @description The session is a cookie with the rights of the key. After failed attempts, an address must wait.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        platform_key: string;
                    };
                };
            };
            responses: {
                /** @description Default Response */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            platform_key_id: string;
                            /** @description The client's address at sign-in */
                            address: string;
                            user_agent: string;
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            seen_at: string;
                            /** @description When it ends even if it is used; ISO 8601, UTC */
                            expires_at: string;
                            /** @description When it ends without a further request; ISO 8601, UTC */
                            idle_expires_at: string;
                            revoked_at: string | null;
                            /** @enum {unknown} */
                            scope: "admin" | "read" | "billing";
                            key_name: string;
                            /** @description The only tenant that the session may use */
                            tenant_id: string | null;
                            /** @description The only region that the session may use */
                            region: string | null;
                            /** @description For the header `X-CSRF-Token` of writes with this session */
                            csrf_token: string;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/console-sessions/current": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The session of the request, with its CSRF token */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            platform_key_id: string;
                            /** @description The client's address at sign-in */
                            address: string;
                            user_agent: string;
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            seen_at: string;
                            /** @description When it ends even if it is used; ISO 8601, UTC */
                            expires_at: string;
                            /** @description When it ends without a further request; ISO 8601, UTC */
                            idle_expires_at: string;
                            revoked_at: string | null;
                            /** @enum {unknown} */
                            scope: "admin" | "read" | "billing";
                            key_name: string;
                            /** @description The only tenant that the session may use */
                            tenant_id: string | null;
                            /** @description The only region that the session may use */
                            region: string | null;
                            /** @description For the header `X-CSRF-Token` of writes with this session */
                            csrf_token: string;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Sign out */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/console-sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** End a console session at once */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            platform_key_id: string;
                            /** @description The client's address at sign-in */
                            address: string;
                            user_agent: string;
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            seen_at: string;
                            /** @description When it ends even if it is used; ISO 8601, UTC */
                            expires_at: string;
                            /** @description When it ends without a further request; ISO 8601, UTC */
                            idle_expires_at: string;
                            revoked_at: string | null;
                        };
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/fleet": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The number of tenants by status, and by reason for attention */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenants: number;
                            by_status: {
                                [key: string]: number;
                            };
                            attention: {
                                Failed: number;
                                Cluster: number;
                                Loss: number;
                                Disk: number;
                                Sql: number;
                                Drift: number;
                                ProofFailed: number;
                                NotProven: number;
                                Quota: number;
                            };
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/fleet/attention": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tenants that need attention, oldest first */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `next_cursor` of the previous page */
                    cursor?: string;
                    code?: "Failed" | "Cluster" | "Loss" | "Disk" | "Sql" | "Drift" | "ProofFailed" | "NotProven" | "Quota";
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenants: {
                                tenant_id: string;
                                name: string;
                                plan: string;
                                region: string;
                                status: string;
                                /** @description The most urgent first */
                                reasons: {
                                    /** @enum {unknown} */
                                    code: "Failed" | "Cluster" | "Loss" | "Disk" | "Sql" | "Drift" | "ProofFailed" | "NotProven" | "Quota";
                                    message: string;
                                    since: string | null;
                                }[];
                            }[];
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The tenants whose state has changed, as server-sent events
         * @description An event `change` has `{"tenant_ids":[…]}`, or `{"tenant_ids":null}` if many or unknown ones have changed. The stream ends after five minutes.
         */
        get: {
            parameters: {
                query?: {
                    tenant_id?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Health of the control plane */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** @enum {unknown} */
                            status: "healthy" | "unhealthy";
                            observed_at: string;
                        };
                    };
                };
                /** @description Default Response */
                503: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** @enum {unknown} */
                            status: "healthy" | "unhealthy";
                            observed_at: string;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A tenant's health, as its runtime and its engine report it at present */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            generation: number;
                            status: "healthy" | "unhealthy" | "unknown";
                            components: {
                                database: {
                                    status: "healthy" | "unhealthy" | "unknown";
                                    observed_at: string;
                                    message?: string;
                                };
                                storage: {
                                    status: "healthy" | "unhealthy" | "unknown";
                                    observed_at: string;
                                    message?: string;
                                };
                                functions: {
                                    status: "healthy" | "unhealthy" | "unknown";
                                    observed_at: string;
                                    message?: string;
                                };
                                postgres?: {
                                    status: "healthy" | "unhealthy" | "unknown";
                                    observed_at: string;
                                    message?: string;
                                    container: {
                                        state: string;
                                        /** @enum {unknown} */
                                        health: "none" | "starting" | "healthy" | "unhealthy";
                                        restarts: number;
                                        started_at: string | null;
                                        /** @description The code of the last exit; 0 while it runs */
                                        exit_code: number;
                                        out_of_memory: boolean;
                                    } | null;
                                };
                                runtime?: {
                                    status: "healthy" | "unhealthy" | "unknown";
                                    observed_at: string;
                                    message?: string;
                                    container: {
                                        state: string;
                                        /** @enum {unknown} */
                                        health: "none" | "starting" | "healthy" | "unhealthy";
                                        restarts: number;
                                        started_at: string | null;
                                        /** @description The code of the last exit; 0 while it runs */
                                        exit_code: number;
                                        out_of_memory: boolean;
                                    } | null;
                                };
                            };
                            /** @description The members of the tenant's cluster; empty if none responds */
                            members?: {
                                name: string;
                                /** @enum {unknown} */
                                role: "primary" | "replica" | "absent";
                                /** @description Patroni's state, such as running or streaming */
                                state: string;
                                /** @description Bytes of the log that it has not replayed */
                                lag_bytes: number | null;
                                timeline: number | null;
                                /** @description Whether it may confirm commits of the primary */
                                synchronous: boolean;
                            }[];
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/hosts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The hosts of the regions, with their free resources */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            hosts: {
                                /** @description The region, if it has one host; otherwise REGION.HOST */
                                id: string;
                                region: string;
                                /** @description Hosts of one zone may fail together */
                                zone: string | null;
                                /** @description The name that the host reports */
                                name: string | null;
                                engine: string;
                                api_version: string | null;
                                /**
                                 * @description `unknown` before the first measurement
                                 * @enum {unknown}
                                 */
                                state: "reachable" | "unreachable" | "unknown";
                                /**
                                 * @description Whether services are put on the host, or leave it
                                 * @enum {unknown}
                                 */
                                use: "active" | "draining" | "lost";
                                /** @description Why the last measurement has failed */
                                error: string | null;
                                /** @description The time of the last successful measurement, from which all amounts are; ISO 8601, UTC */
                                last_seen_at: string | null;
                                /** @description The condition `Ready` of the region; null before the first observation */
                                condition: {
                                    status: string;
                                    reason: string;
                                    message: string;
                                    /** @description ISO 8601, UTC */
                                    observed_at: string;
                                } | null;
                                /** @description The tenants of the region; on one of several hosts, `dedicated` are those with services there */
                                tenants: {
                                    total: number;
                                    dedicated: number;
                                };
                                /** @description The services that tenants have on one of several hosts, with the memory that they reserve */
                                services: {
                                    tenant_id: string;
                                    service: string;
                                    memory_bytes: number;
                                }[];
                                /** @description Thousandths of a core */
                                cpu_millis: {
                                    total: number | null;
                                    /** @description The sum of the limits of services that run */
                                    reserved_by_tenants: number;
                                    /** @description The sum of the limits of services that run */
                                    reserved_by_platform: number;
                                    /** @description What programs can use now; null if it could not be read */
                                    free: number | null;
                                };
                                memory_bytes: {
                                    total: number | null;
                                    /** @description The sum of the limits of services that run */
                                    reserved_by_tenants: number;
                                    /** @description The sum of the limits of services that run */
                                    reserved_by_platform: number;
                                    /** @description What programs can use now; null if it could not be read */
                                    free: number | null;
                                };
                                /** @description The disk with the volumes */
                                disk_bytes: {
                                    total: number | null;
                                    /** @description The sum of the quotas of documents and files */
                                    reserved_by_tenants: number;
                                    /** @description Tenants that the sum does not contain */
                                    tenants_without_quota: number;
                                    /** @description What programs can use now; null if it could not be read */
                                    free: number | null;
                                };
                                warnings: string[];
                            }[];
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/regions/{id}/hosts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The hosts of a region, with what runs there */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            hosts: {
                                /** @description The region, if it has one host; otherwise REGION.HOST */
                                id: string;
                                region: string;
                                /** @description Hosts of one zone may fail together */
                                zone: string | null;
                                /** @description The name that the host reports */
                                name: string | null;
                                engine: string;
                                api_version: string | null;
                                /**
                                 * @description `unknown` before the first measurement
                                 * @enum {unknown}
                                 */
                                state: "reachable" | "unreachable" | "unknown";
                                /**
                                 * @description Whether services are put on the host, or leave it
                                 * @enum {unknown}
                                 */
                                use: "active" | "draining" | "lost";
                                /** @description Why the last measurement has failed */
                                error: string | null;
                                /** @description The time of the last successful measurement, from which all amounts are; ISO 8601, UTC */
                                last_seen_at: string | null;
                                /** @description The condition `Ready` of the region; null before the first observation */
                                condition: {
                                    status: string;
                                    reason: string;
                                    message: string;
                                    /** @description ISO 8601, UTC */
                                    observed_at: string;
                                } | null;
                                /** @description The tenants of the region; on one of several hosts, `dedicated` are those with services there */
                                tenants: {
                                    total: number;
                                    dedicated: number;
                                };
                                /** @description The services that tenants have on one of several hosts, with the memory that they reserve */
                                services: {
                                    tenant_id: string;
                                    service: string;
                                    memory_bytes: number;
                                }[];
                                /** @description Thousandths of a core */
                                cpu_millis: {
                                    total: number | null;
                                    /** @description The sum of the limits of services that run */
                                    reserved_by_tenants: number;
                                    /** @description The sum of the limits of services that run */
                                    reserved_by_platform: number;
                                    /** @description What programs can use now; null if it could not be read */
                                    free: number | null;
                                };
                                memory_bytes: {
                                    total: number | null;
                                    /** @description The sum of the limits of services that run */
                                    reserved_by_tenants: number;
                                    /** @description The sum of the limits of services that run */
                                    reserved_by_platform: number;
                                    /** @description What programs can use now; null if it could not be read */
                                    free: number | null;
                                };
                                /** @description The disk with the volumes */
                                disk_bytes: {
                                    total: number | null;
                                    /** @description The sum of the quotas of documents and files */
                                    reserved_by_tenants: number;
                                    /** @description Tenants that the sum does not contain */
                                    tenants_without_quota: number;
                                    /** @description What programs can use now; null if it could not be read */
                                    free: number | null;
                                };
                                warnings: string[];
                            }[];
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/hosts/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One host */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** @description The region, if it has one host; otherwise REGION.HOST */
                            id: string;
                            region: string;
                            /** @description Hosts of one zone may fail together */
                            zone: string | null;
                            /** @description The name that the host reports */
                            name: string | null;
                            engine: string;
                            api_version: string | null;
                            /**
                             * @description `unknown` before the first measurement
                             * @enum {unknown}
                             */
                            state: "reachable" | "unreachable" | "unknown";
                            /**
                             * @description Whether services are put on the host, or leave it
                             * @enum {unknown}
                             */
                            use: "active" | "draining" | "lost";
                            /** @description Why the last measurement has failed */
                            error: string | null;
                            /** @description The time of the last successful measurement, from which all amounts are; ISO 8601, UTC */
                            last_seen_at: string | null;
                            /** @description The condition `Ready` of the region; null before the first observation */
                            condition: {
                                status: string;
                                reason: string;
                                message: string;
                                /** @description ISO 8601, UTC */
                                observed_at: string;
                            } | null;
                            /** @description The tenants of the region; on one of several hosts, `dedicated` are those with services there */
                            tenants: {
                                total: number;
                                dedicated: number;
                            };
                            /** @description The services that tenants have on one of several hosts, with the memory that they reserve */
                            services: {
                                tenant_id: string;
                                service: string;
                                memory_bytes: number;
                            }[];
                            /** @description Thousandths of a core */
                            cpu_millis: {
                                total: number | null;
                                /** @description The sum of the limits of services that run */
                                reserved_by_tenants: number;
                                /** @description The sum of the limits of services that run */
                                reserved_by_platform: number;
                                /** @description What programs can use now; null if it could not be read */
                                free: number | null;
                            };
                            memory_bytes: {
                                total: number | null;
                                /** @description The sum of the limits of services that run */
                                reserved_by_tenants: number;
                                /** @description The sum of the limits of services that run */
                                reserved_by_platform: number;
                                /** @description What programs can use now; null if it could not be read */
                                free: number | null;
                            };
                            /** @description The disk with the volumes */
                            disk_bytes: {
                                total: number | null;
                                /** @description The sum of the quotas of documents and files */
                                reserved_by_tenants: number;
                                /** @description Tenants that the sum does not contain */
                                tenants_without_quota: number;
                                /** @description What programs can use now; null if it could not be read */
                                free: number | null;
                            };
                            warnings: string[];
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/regions/{id}/hosts/{host}/drain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Move the services of clusters away from a host
         * @description The services move one by one, a primary after a switchover. New services are not put there. Tenants with a single database stay, because their data is on the host.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    host: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            use: string;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/regions/{id}/hosts/{host}/lost": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Give up a host that does not respond
         * @description The services of clusters are created on other hosts, and members copy their data from the primary. Without this request, a host counts as lost when it has not responded for the time in the settings of the region.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    host: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            use: string;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/regions/{id}/hosts/{host}/activate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Use a host again
         * @description Services that were replaced meanwhile are removed from it. Others continue.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    host: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            use: string;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/drift": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The differences between what exists of a tenant and what should exist */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            /** @enum {unknown} */
                            policy: "repair" | "report" | "ignore";
                            observed_at: string;
                            drifted: boolean;
                            differences: {
                                component: string;
                                field: string;
                                desired: string | number | boolean | null;
                                observed: string | number | boolean | null;
                                repair: {
                                    /**
                                     * @description The smallest part that contains the field and can be repaired alone
                                     * @enum {unknown}
                                     */
                                    scope: "field" | "component" | "tenant";
                                    /** @description The components that the repair changes */
                                    components: string[];
                                    /** @description Other present differences that the repair ends */
                                    also: {
                                        component: string;
                                        field: string;
                                    }[];
                                    /** @description Whether requests to the tenant may wait or fail meanwhile */
                                    interrupts: boolean;
                                };
                            }[];
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/drift/repair": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Repair all differences of a tenant, or chosen ones
         * @description The drift policy stays, and decides about all other differences.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        /** @description Default: everything */
                        fields?: {
                            component: string;
                            field: string;
                        }[];
                    } | null;
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            plan: string;
                            region: string;
                            isolation: string;
                            /** @description Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data */
                            isolation_mismatch: {
                                /** @enum {unknown} */
                                code: "WEAKER_THAN_PLAN" | "STRONGER_THAN_PLAN";
                                plan_isolation: string;
                                message: string;
                            } | null;
                            /** @enum {unknown} */
                            status: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                            reason: string | null;
                            /** @description The tenant's own URL, by host name */
                            url: string;
                            /** @description The tenant's URL by path, for clients that cannot resolve the host name */
                            path_url: string;
                            /** @description Without its password, except in the response that creates or rotates it */
                            database_url: string;
                            read_only_database_url: string | null;
                            generation: number;
                            observed_generation: number;
                            conditions: {
                                type: string;
                                status: string;
                                reason: string;
                                message: string;
                                /** @description ISO 8601, UTC */
                                observed_at: string;
                            }[];
                            suspend_reason: string | null;
                            /** @description Whether paying ends the suspension */
                            payment_required: boolean;
                            /** @enum {unknown} */
                            drift_policy: "repair" | "report" | "ignore";
                            /** @description Sizes of its own services: those set for it, or the plan's */
                            resources: {
                                postgres: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                                runtime: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                            } | null;
                            runtime_image: string | null;
                            pause_after_seconds: number | null;
                            backup_schedule: string | null;
                            backups_kept: number;
                            archive_days: number | null;
                            /** @description Rate of requests at each gateway: its plan's, or one of its own; null is unlimited */
                            rate_limit: {
                                per_second: number | null;
                                burst: number | null;
                                /** @enum {unknown} */
                                source: "plan" | "tenant";
                            };
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            updated_at: string;
                            purge_after: string | null;
                            /** @description null if nothing differs */
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            } | null;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List tenants, oldest first */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `next_cursor` of the previous page */
                    cursor?: string;
                    plan?: string;
                    region?: string;
                    status?: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                    name_prefix?: string;
                    /** @description A part of the name, or the ID */
                    search?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenants: {
                                tenant_id: string;
                                name: string;
                                plan: string;
                                region: string;
                                isolation: string;
                                /** @description Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data */
                                isolation_mismatch: {
                                    /** @enum {unknown} */
                                    code: "WEAKER_THAN_PLAN" | "STRONGER_THAN_PLAN";
                                    plan_isolation: string;
                                    message: string;
                                } | null;
                                /** @enum {unknown} */
                                status: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                                reason: string | null;
                                /** @description The tenant's own URL, by host name */
                                url: string;
                                /** @description The tenant's URL by path, for clients that cannot resolve the host name */
                                path_url: string;
                                /** @description Without its password, except in the response that creates or rotates it */
                                database_url: string;
                                read_only_database_url: string | null;
                                generation: number;
                                observed_generation: number;
                                conditions: {
                                    type: string;
                                    status: string;
                                    reason: string;
                                    message: string;
                                    /** @description ISO 8601, UTC */
                                    observed_at: string;
                                }[];
                                suspend_reason: string | null;
                                /** @description Whether paying ends the suspension */
                                payment_required: boolean;
                                /** @enum {unknown} */
                                drift_policy: "repair" | "report" | "ignore";
                                /** @description Sizes of its own services: those set for it, or the plan's */
                                resources: {
                                    postgres: {
                                        memory_bytes: number;
                                        /** @description Thousandths of a core */
                                        cpu_millis: number;
                                    };
                                    runtime: {
                                        memory_bytes: number;
                                        /** @description Thousandths of a core */
                                        cpu_millis: number;
                                    };
                                } | null;
                                runtime_image: string | null;
                                pause_after_seconds: number | null;
                                backup_schedule: string | null;
                                backups_kept: number;
                                archive_days: number | null;
                                /** @description Rate of requests at each gateway: its plan's, or one of its own; null is unlimited */
                                rate_limit: {
                                    per_second: number | null;
                                    burst: number | null;
                                    /** @enum {unknown} */
                                    source: "plan" | "tenant";
                                };
                                /** @description ISO 8601, UTC */
                                created_at: string;
                                /** @description ISO 8601, UTC */
                                updated_at: string;
                                purge_after: string | null;
                            }[];
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        put?: never;
        /**
         * Create a tenant
         * @description Responds at once with the status `pending`; with `Prefer: wait=N`, when the tenant is ready or after N seconds. The keys and the database password are returned only once.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        /** @description DNS label of 3 to 63 characters */
                        name: string;
                        /** @description Free, Pro or Enterprise */
                        plan: string;
                        region: string;
                        /**
                         * @description Default: the plan's own model, or the strongest that the region supports
                         * @enum {unknown}
                         */
                        isolation?: "schema-per-tenant" | "database-per-tenant" | "cluster-per-tenant";
                        /** @description Rate of requests at each gateway. Default: the plan's */
                        rate_limit?: {
                            per_second: number;
                            burst: number;
                        } | "unlimited";
                    };
                };
            };
            responses: {
                /** @description Default Response */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            plan: string;
                            region: string;
                            isolation: string;
                            /** @description Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data */
                            isolation_mismatch: {
                                /** @enum {unknown} */
                                code: "WEAKER_THAN_PLAN" | "STRONGER_THAN_PLAN";
                                plan_isolation: string;
                                message: string;
                            } | null;
                            /** @enum {unknown} */
                            status: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                            reason: string | null;
                            /** @description The tenant's own URL, by host name */
                            url: string;
                            /** @description The tenant's URL by path, for clients that cannot resolve the host name */
                            path_url: string;
                            /** @description Without its password, except in the response that creates or rotates it */
                            database_url: string;
                            read_only_database_url: string | null;
                            generation: number;
                            observed_generation: number;
                            conditions: {
                                type: string;
                                status: string;
                                reason: string;
                                message: string;
                                /** @description ISO 8601, UTC */
                                observed_at: string;
                            }[];
                            suspend_reason: string | null;
                            /** @description Whether paying ends the suspension */
                            payment_required: boolean;
                            /** @enum {unknown} */
                            drift_policy: "repair" | "report" | "ignore";
                            /** @description Sizes of its own services: those set for it, or the plan's */
                            resources: {
                                postgres: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                                runtime: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                            } | null;
                            runtime_image: string | null;
                            pause_after_seconds: number | null;
                            backup_schedule: string | null;
                            backups_kept: number;
                            archive_days: number | null;
                            /** @description Rate of requests at each gateway: its plan's, or one of its own; null is unlimited */
                            rate_limit: {
                                per_second: number | null;
                                burst: number | null;
                                /** @enum {unknown} */
                                source: "plan" | "tenant";
                            };
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            updated_at: string;
                            purge_after: string | null;
                            keys: {
                                publishable_key: string;
                                secret_key: string;
                                jwt_secret: string;
                            };
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Return a tenant */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            plan: string;
                            region: string;
                            isolation: string;
                            /** @description Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data */
                            isolation_mismatch: {
                                /** @enum {unknown} */
                                code: "WEAKER_THAN_PLAN" | "STRONGER_THAN_PLAN";
                                plan_isolation: string;
                                message: string;
                            } | null;
                            /** @enum {unknown} */
                            status: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                            reason: string | null;
                            /** @description The tenant's own URL, by host name */
                            url: string;
                            /** @description The tenant's URL by path, for clients that cannot resolve the host name */
                            path_url: string;
                            /** @description Without its password, except in the response that creates or rotates it */
                            database_url: string;
                            read_only_database_url: string | null;
                            generation: number;
                            observed_generation: number;
                            conditions: {
                                type: string;
                                status: string;
                                reason: string;
                                message: string;
                                /** @description ISO 8601, UTC */
                                observed_at: string;
                            }[];
                            suspend_reason: string | null;
                            /** @description Whether paying ends the suspension */
                            payment_required: boolean;
                            /** @enum {unknown} */
                            drift_policy: "repair" | "report" | "ignore";
                            /** @description Sizes of its own services: those set for it, or the plan's */
                            resources: {
                                postgres: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                                runtime: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                            } | null;
                            runtime_image: string | null;
                            pause_after_seconds: number | null;
                            backup_schedule: string | null;
                            backups_kept: number;
                            archive_days: number | null;
                            /** @description Rate of requests at each gateway: its plan's, or one of its own; null is unlimited */
                            rate_limit: {
                                per_second: number | null;
                                burst: number | null;
                                /** @enum {unknown} */
                                source: "plan" | "tenant";
                            };
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            updated_at: string;
                            purge_after: string | null;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /**
         * Delete a tenant
         * @description Its service ends at once. Its data is destroyed after the grace period, or at once with `?purge=true`.
         */
        delete: {
            parameters: {
                query?: {
                    purge?: "true" | "false";
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            plan: string;
                            region: string;
                            isolation: string;
                            /** @description Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data */
                            isolation_mismatch: {
                                /** @enum {unknown} */
                                code: "WEAKER_THAN_PLAN" | "STRONGER_THAN_PLAN";
                                plan_isolation: string;
                                message: string;
                            } | null;
                            /** @enum {unknown} */
                            status: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                            reason: string | null;
                            /** @description The tenant's own URL, by host name */
                            url: string;
                            /** @description The tenant's URL by path, for clients that cannot resolve the host name */
                            path_url: string;
                            /** @description Without its password, except in the response that creates or rotates it */
                            database_url: string;
                            read_only_database_url: string | null;
                            generation: number;
                            observed_generation: number;
                            conditions: {
                                type: string;
                                status: string;
                                reason: string;
                                message: string;
                                /** @description ISO 8601, UTC */
                                observed_at: string;
                            }[];
                            suspend_reason: string | null;
                            /** @description Whether paying ends the suspension */
                            payment_required: boolean;
                            /** @enum {unknown} */
                            drift_policy: "repair" | "report" | "ignore";
                            /** @description Sizes of its own services: those set for it, or the plan's */
                            resources: {
                                postgres: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                                runtime: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                            } | null;
                            runtime_image: string | null;
                            pause_after_seconds: number | null;
                            backup_schedule: string | null;
                            backups_kept: number;
                            archive_days: number | null;
                            /** @description Rate of requests at each gateway: its plan's, or one of its own; null is unlimited */
                            rate_limit: {
                                per_second: number | null;
                                burst: number | null;
                                /** @enum {unknown} */
                                source: "plan" | "tenant";
                            };
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            updated_at: string;
                            purge_after: string | null;
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        };
                    };
                };
            };
        };
        options?: never;
        head?: never;
        /**
         * Change a tenant
         * @description With `If-Match`, only if that ETag is still current.
         */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        name?: string;
                        plan?: string;
                        /**
                         * @description Moves the tenant, while it is served. No other field than `region` may be in the request
                         * @enum {unknown}
                         */
                        isolation?: "schema-per-tenant" | "database-per-tenant" | "cluster-per-tenant";
                        /** @description Moves the tenant there, while it is served. No other field than `isolation` may be in the request */
                        region?: string;
                        suspended?: boolean;
                        /** @description Public; shown to the tenant's callers */
                        suspend_reason?: string | null;
                        /** @description Whether paying ends the suspension */
                        payment_required?: boolean;
                        /** @enum {unknown} */
                        drift_policy?: "repair" | "report" | "ignore";
                        /** @description null: the plan's. Absent fields stay unchanged */
                        resources?: {
                            postgres?: {
                                memory_bytes?: number;
                                /** @description Thousandths of a core */
                                cpu_millis?: number;
                            };
                            runtime?: {
                                memory_bytes?: number;
                                /** @description Thousandths of a core */
                                cpu_millis?: number;
                            };
                        } | null;
                        /** @description null: the region's default, for a cluster never; 0: never; otherwise at least 10 */
                        pause_after_seconds?: number | null;
                        /** @description Cron expression of five fields, UTC, at most once an hour; null: none */
                        backup_schedule?: string | null;
                        backups_kept?: number;
                        /** @description Days that point-in-time recovery covers; null: no archive. A change to or from null restarts Postgres, in a cluster one member after the other */
                        archive_days?: number | null;
                        /** @description Rate of requests at each gateway; null: the plan's */
                        rate_limit?: {
                            per_second: number;
                            burst: number;
                        } | "unlimited" | null;
                    };
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            plan: string;
                            region: string;
                            isolation: string;
                            /** @description Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data */
                            isolation_mismatch: {
                                /** @enum {unknown} */
                                code: "WEAKER_THAN_PLAN" | "STRONGER_THAN_PLAN";
                                plan_isolation: string;
                                message: string;
                            } | null;
                            /** @enum {unknown} */
                            status: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                            reason: string | null;
                            /** @description The tenant's own URL, by host name */
                            url: string;
                            /** @description The tenant's URL by path, for clients that cannot resolve the host name */
                            path_url: string;
                            /** @description Without its password, except in the response that creates or rotates it */
                            database_url: string;
                            read_only_database_url: string | null;
                            generation: number;
                            observed_generation: number;
                            conditions: {
                                type: string;
                                status: string;
                                reason: string;
                                message: string;
                                /** @description ISO 8601, UTC */
                                observed_at: string;
                            }[];
                            suspend_reason: string | null;
                            /** @description Whether paying ends the suspension */
                            payment_required: boolean;
                            /** @enum {unknown} */
                            drift_policy: "repair" | "report" | "ignore";
                            /** @description Sizes of its own services: those set for it, or the plan's */
                            resources: {
                                postgres: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                                runtime: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                            } | null;
                            runtime_image: string | null;
                            pause_after_seconds: number | null;
                            backup_schedule: string | null;
                            backups_kept: number;
                            archive_days: number | null;
                            /** @description Rate of requests at each gateway: its plan's, or one of its own; null is unlimited */
                            rate_limit: {
                                per_second: number | null;
                                burst: number | null;
                                /** @enum {unknown} */
                                source: "plan" | "tenant";
                            };
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            updated_at: string;
                            purge_after: string | null;
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        };
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/tenants/{id}/keys/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create new API keys, a new token secret or a new secret of signed URLs for a tenant
         * @description The old ones stay valid for `overlap_seconds` (default 3600). `kinds` selects some of them; the default is all but the secret of signed URLs. The keys are returned only once. No response contains the secret of signed URLs.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        overlap_seconds?: number;
                        kinds?: ("publishable_key" | "secret_key" | "jwt_secret" | "signing_secret")[];
                    };
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            keys: {
                                publishable_key?: string;
                                secret_key?: string;
                                jwt_secret?: string;
                            };
                            old_keys_expire_at: string;
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/database-password/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a new password for `database_url`
         * @description When the operation has succeeded, only the new password is valid, and all SQL sessions of the login have ended. The password is returned only once.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            database_url: string;
                            /** @description null without a cluster */
                            read_only_database_url: string | null;
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/service-passwords/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create new passwords for the services' own logins in a tenant's home
         * @description The runtime and schema reloads log in with them; no response contains them. No request fails, and the tenant's keys and `database_url` stay as they are. When the operation has succeeded, the old passwords are dead.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/jwks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Return the public keys of a tenant's tokens */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            keys: {
                                kid: string;
                                /** @enum {unknown} */
                                alg: "RS256" | "ES256" | "EdDSA";
                                kty: string;
                                n?: string;
                                e?: string;
                                crv?: string;
                                x?: string;
                                y?: string;
                            }[];
                        };
                    };
                };
            };
        };
        /**
         * Replace the public keys of a tenant's tokens
         * @description A JWKS (RFC 7517) of RSA (RS256), P-256 (ES256) and Ed25519 (EdDSA) keys. An empty list removes all.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        keys: {
                            [key: string]: unknown;
                        }[];
                    };
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            keys: {
                                kid: string;
                                /** @enum {unknown} */
                                alg: "RS256" | "ES256" | "EdDSA";
                                kty: string;
                                n?: string;
                                e?: string;
                                crv?: string;
                                x?: string;
                                y?: string;
                            }[];
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        };
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/restart": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restart a tenant's own services
         * @description Its data stays. Stopped services restart when the tenant next runs.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            plan: string;
                            region: string;
                            isolation: string;
                            /** @description Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data */
                            isolation_mismatch: {
                                /** @enum {unknown} */
                                code: "WEAKER_THAN_PLAN" | "STRONGER_THAN_PLAN";
                                plan_isolation: string;
                                message: string;
                            } | null;
                            /** @enum {unknown} */
                            status: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                            reason: string | null;
                            /** @description The tenant's own URL, by host name */
                            url: string;
                            /** @description The tenant's URL by path, for clients that cannot resolve the host name */
                            path_url: string;
                            /** @description Without its password, except in the response that creates or rotates it */
                            database_url: string;
                            read_only_database_url: string | null;
                            generation: number;
                            observed_generation: number;
                            conditions: {
                                type: string;
                                status: string;
                                reason: string;
                                message: string;
                                /** @description ISO 8601, UTC */
                                observed_at: string;
                            }[];
                            suspend_reason: string | null;
                            /** @description Whether paying ends the suspension */
                            payment_required: boolean;
                            /** @enum {unknown} */
                            drift_policy: "repair" | "report" | "ignore";
                            /** @description Sizes of its own services: those set for it, or the plan's */
                            resources: {
                                postgres: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                                runtime: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                            } | null;
                            runtime_image: string | null;
                            pause_after_seconds: number | null;
                            backup_schedule: string | null;
                            backups_kept: number;
                            archive_days: number | null;
                            /** @description Rate of requests at each gateway: its plan's, or one of its own; null is unlimited */
                            rate_limit: {
                                per_second: number | null;
                                burst: number | null;
                                /** @enum {unknown} */
                                source: "plan" | "tenant";
                            };
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            updated_at: string;
                            purge_after: string | null;
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stop a tenant's own services until its next request
         * @description Its data stays. The gateway holds the next request while the tenant wakes.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            plan: string;
                            region: string;
                            isolation: string;
                            /** @description Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data */
                            isolation_mismatch: {
                                /** @enum {unknown} */
                                code: "WEAKER_THAN_PLAN" | "STRONGER_THAN_PLAN";
                                plan_isolation: string;
                                message: string;
                            } | null;
                            /** @enum {unknown} */
                            status: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                            reason: string | null;
                            /** @description The tenant's own URL, by host name */
                            url: string;
                            /** @description The tenant's URL by path, for clients that cannot resolve the host name */
                            path_url: string;
                            /** @description Without its password, except in the response that creates or rotates it */
                            database_url: string;
                            read_only_database_url: string | null;
                            generation: number;
                            observed_generation: number;
                            conditions: {
                                type: string;
                                status: string;
                                reason: string;
                                message: string;
                                /** @description ISO 8601, UTC */
                                observed_at: string;
                            }[];
                            suspend_reason: string | null;
                            /** @description Whether paying ends the suspension */
                            payment_required: boolean;
                            /** @enum {unknown} */
                            drift_policy: "repair" | "report" | "ignore";
                            /** @description Sizes of its own services: those set for it, or the plan's */
                            resources: {
                                postgres: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                                runtime: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                            } | null;
                            runtime_image: string | null;
                            pause_after_seconds: number | null;
                            backup_schedule: string | null;
                            backups_kept: number;
                            archive_days: number | null;
                            /** @description Rate of requests at each gateway: its plan's, or one of its own; null is unlimited */
                            rate_limit: {
                                per_second: number | null;
                                burst: number | null;
                                /** @enum {unknown} */
                                source: "plan" | "tenant";
                            };
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            updated_at: string;
                            purge_after: string | null;
                            /** @description null if no change was necessary */
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            } | null;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/wake": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Wake a paused tenant
         * @description A tenant that is not paused stays unchanged.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            plan: string;
                            region: string;
                            isolation: string;
                            /** @description Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data */
                            isolation_mismatch: {
                                /** @enum {unknown} */
                                code: "WEAKER_THAN_PLAN" | "STRONGER_THAN_PLAN";
                                plan_isolation: string;
                                message: string;
                            } | null;
                            /** @enum {unknown} */
                            status: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                            reason: string | null;
                            /** @description The tenant's own URL, by host name */
                            url: string;
                            /** @description The tenant's URL by path, for clients that cannot resolve the host name */
                            path_url: string;
                            /** @description Without its password, except in the response that creates or rotates it */
                            database_url: string;
                            read_only_database_url: string | null;
                            generation: number;
                            observed_generation: number;
                            conditions: {
                                type: string;
                                status: string;
                                reason: string;
                                message: string;
                                /** @description ISO 8601, UTC */
                                observed_at: string;
                            }[];
                            suspend_reason: string | null;
                            /** @description Whether paying ends the suspension */
                            payment_required: boolean;
                            /** @enum {unknown} */
                            drift_policy: "repair" | "report" | "ignore";
                            /** @description Sizes of its own services: those set for it, or the plan's */
                            resources: {
                                postgres: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                                runtime: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                            } | null;
                            runtime_image: string | null;
                            pause_after_seconds: number | null;
                            backup_schedule: string | null;
                            backups_kept: number;
                            archive_days: number | null;
                            /** @description Rate of requests at each gateway: its plan's, or one of its own; null is unlimited */
                            rate_limit: {
                                per_second: number | null;
                                burst: number | null;
                                /** @enum {unknown} */
                                source: "plan" | "tenant";
                            };
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            updated_at: string;
                            purge_after: string | null;
                            /** @description null if no change was necessary */
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            } | null;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/undelete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revert the deletion of a tenant within its grace time
         * @description The tenant is served again, with everything that it had. A tenant that is not deleted stays unchanged.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            plan: string;
                            region: string;
                            isolation: string;
                            /** @description Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data */
                            isolation_mismatch: {
                                /** @enum {unknown} */
                                code: "WEAKER_THAN_PLAN" | "STRONGER_THAN_PLAN";
                                plan_isolation: string;
                                message: string;
                            } | null;
                            /** @enum {unknown} */
                            status: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                            reason: string | null;
                            /** @description The tenant's own URL, by host name */
                            url: string;
                            /** @description The tenant's URL by path, for clients that cannot resolve the host name */
                            path_url: string;
                            /** @description Without its password, except in the response that creates or rotates it */
                            database_url: string;
                            read_only_database_url: string | null;
                            generation: number;
                            observed_generation: number;
                            conditions: {
                                type: string;
                                status: string;
                                reason: string;
                                message: string;
                                /** @description ISO 8601, UTC */
                                observed_at: string;
                            }[];
                            suspend_reason: string | null;
                            /** @description Whether paying ends the suspension */
                            payment_required: boolean;
                            /** @enum {unknown} */
                            drift_policy: "repair" | "report" | "ignore";
                            /** @description Sizes of its own services: those set for it, or the plan's */
                            resources: {
                                postgres: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                                runtime: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                            } | null;
                            runtime_image: string | null;
                            pause_after_seconds: number | null;
                            backup_schedule: string | null;
                            backups_kept: number;
                            archive_days: number | null;
                            /** @description Rate of requests at each gateway: its plan's, or one of its own; null is unlimited */
                            rate_limit: {
                                per_second: number | null;
                                burst: number | null;
                                /** @enum {unknown} */
                                source: "plan" | "tenant";
                            };
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            updated_at: string;
                            purge_after: string | null;
                            /** @description null if no change was necessary */
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            } | null;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/switchover": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make another member of a tenant's cluster the primary
         * @description No committed row is lost. Sessions of the former primary end, and writes wait for some seconds.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        /**
                         * @description Default: the replica with the smallest lag
                         * @enum {unknown}
                         */
                        to?: "postgres-1" | "postgres-2" | "postgres-3";
                    } | null;
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            plan: string;
                            region: string;
                            isolation: string;
                            /** @description Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data */
                            isolation_mismatch: {
                                /** @enum {unknown} */
                                code: "WEAKER_THAN_PLAN" | "STRONGER_THAN_PLAN";
                                plan_isolation: string;
                                message: string;
                            } | null;
                            /** @enum {unknown} */
                            status: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                            reason: string | null;
                            /** @description The tenant's own URL, by host name */
                            url: string;
                            /** @description The tenant's URL by path, for clients that cannot resolve the host name */
                            path_url: string;
                            /** @description Without its password, except in the response that creates or rotates it */
                            database_url: string;
                            read_only_database_url: string | null;
                            generation: number;
                            observed_generation: number;
                            conditions: {
                                type: string;
                                status: string;
                                reason: string;
                                message: string;
                                /** @description ISO 8601, UTC */
                                observed_at: string;
                            }[];
                            suspend_reason: string | null;
                            /** @description Whether paying ends the suspension */
                            payment_required: boolean;
                            /** @enum {unknown} */
                            drift_policy: "repair" | "report" | "ignore";
                            /** @description Sizes of its own services: those set for it, or the plan's */
                            resources: {
                                postgres: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                                runtime: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                            } | null;
                            runtime_image: string | null;
                            pause_after_seconds: number | null;
                            backup_schedule: string | null;
                            backups_kept: number;
                            archive_days: number | null;
                            /** @description Rate of requests at each gateway: its plan's, or one of its own; null is unlimited */
                            rate_limit: {
                                per_second: number | null;
                                burst: number | null;
                                /** @enum {unknown} */
                                source: "plan" | "tenant";
                            };
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            updated_at: string;
                            purge_after: string | null;
                            /** @description null if the member is the primary already */
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            } | null;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/move": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Move a tenant's home to another shared database of its region
         * @description The tenant is served meanwhile; its requests wait for some seconds at the end. Keys, files and URL stay. Responds at once; with `Prefer: wait=N` when the move has ended, or after N seconds.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        /**
                         * @description A shared database of the region, or the name of the next one, which is then opened
                         * @example tenantry_homes_2
                         */
                        database: string;
                    };
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            plan: string;
                            region: string;
                            isolation: string;
                            /** @description Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data */
                            isolation_mismatch: {
                                /** @enum {unknown} */
                                code: "WEAKER_THAN_PLAN" | "STRONGER_THAN_PLAN";
                                plan_isolation: string;
                                message: string;
                            } | null;
                            /** @enum {unknown} */
                            status: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                            reason: string | null;
                            /** @description The tenant's own URL, by host name */
                            url: string;
                            /** @description The tenant's URL by path, for clients that cannot resolve the host name */
                            path_url: string;
                            /** @description Without its password, except in the response that creates or rotates it */
                            database_url: string;
                            read_only_database_url: string | null;
                            generation: number;
                            observed_generation: number;
                            conditions: {
                                type: string;
                                status: string;
                                reason: string;
                                message: string;
                                /** @description ISO 8601, UTC */
                                observed_at: string;
                            }[];
                            suspend_reason: string | null;
                            /** @description Whether paying ends the suspension */
                            payment_required: boolean;
                            /** @enum {unknown} */
                            drift_policy: "repair" | "report" | "ignore";
                            /** @description Sizes of its own services: those set for it, or the plan's */
                            resources: {
                                postgres: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                                runtime: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                            } | null;
                            runtime_image: string | null;
                            pause_after_seconds: number | null;
                            backup_schedule: string | null;
                            backups_kept: number;
                            archive_days: number | null;
                            /** @description Rate of requests at each gateway: its plan's, or one of its own; null is unlimited */
                            rate_limit: {
                                per_second: number | null;
                                burst: number | null;
                                /** @enum {unknown} */
                                source: "plan" | "tenant";
                            };
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            updated_at: string;
                            purge_after: string | null;
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/move/revert": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Return a tenant's home to the database that its last move has left
         * @description Possible until `revertible_until` of the move. No write is lost, and nothing is copied; requests wait as they do in a move. Responds at once; with `Prefer: wait=N` when the home has returned, or after N seconds.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            plan: string;
                            region: string;
                            isolation: string;
                            /** @description Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data */
                            isolation_mismatch: {
                                /** @enum {unknown} */
                                code: "WEAKER_THAN_PLAN" | "STRONGER_THAN_PLAN";
                                plan_isolation: string;
                                message: string;
                            } | null;
                            /** @enum {unknown} */
                            status: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                            reason: string | null;
                            /** @description The tenant's own URL, by host name */
                            url: string;
                            /** @description The tenant's URL by path, for clients that cannot resolve the host name */
                            path_url: string;
                            /** @description Without its password, except in the response that creates or rotates it */
                            database_url: string;
                            read_only_database_url: string | null;
                            generation: number;
                            observed_generation: number;
                            conditions: {
                                type: string;
                                status: string;
                                reason: string;
                                message: string;
                                /** @description ISO 8601, UTC */
                                observed_at: string;
                            }[];
                            suspend_reason: string | null;
                            /** @description Whether paying ends the suspension */
                            payment_required: boolean;
                            /** @enum {unknown} */
                            drift_policy: "repair" | "report" | "ignore";
                            /** @description Sizes of its own services: those set for it, or the plan's */
                            resources: {
                                postgres: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                                runtime: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                            } | null;
                            runtime_image: string | null;
                            pause_after_seconds: number | null;
                            backup_schedule: string | null;
                            backups_kept: number;
                            archive_days: number | null;
                            /** @description Rate of requests at each gateway: its plan's, or one of its own; null is unlimited */
                            rate_limit: {
                                per_second: number | null;
                                burst: number | null;
                                /** @enum {unknown} */
                                source: "plan" | "tenant";
                            };
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            updated_at: string;
                            purge_after: string | null;
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operations/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a move that has not switched yet
         * @description The tenant continues in its database. The operation fails once nothing of the move is left.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            tenant_id: string;
                            /** @enum {unknown} */
                            kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                            /** @enum {unknown} */
                            state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                            step: string | null;
                            attempts: number;
                            error: string | null;
                            /** @description ISO 8601, UTC */
                            created: string;
                            started: string | null;
                            finished: string | null;
                            /** @description The progress of an operation of the kind `move` */
                            move?: {
                                /** @description The database that the home leaves */
                                from: string;
                                to: string;
                                from_region: string | null;
                                to_region: string | null;
                                from_isolation: string | null;
                                to_isolation: string | null;
                                /** @description Rows that are copied, with those of changes */
                                rows: number;
                                /** @description Bytes of the rows as COPY writes them */
                                bytes: number;
                                /** @description Bytes of the write-ahead log that are still to be read */
                                pending_bytes: number | null;
                                waits_for: string | null;
                                reverts: string | null;
                                revertible_until: string | null;
                                not_revertible_reason: string | null;
                            };
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Log of one of a tenant's own services
         * @description With `follow=true` server-sent events `log`, each with its time as id. `Last-Event-ID` continues after that event. The stream ends after five minutes, and when the key or session is no longer valid.
         */
        get: {
            parameters: {
                query: {
                    /** @description Name of the service */
                    component: "postgres" | "runtime" | "postgres-1" | "postgres-2" | "postgres-3" | "router-1" | "router-2" | "runtime-1" | "runtime-2";
                    /** @description 0 to 1000 lines from the end, default 100 */
                    tail?: string;
                    /** @description ISO 8601, UTC */
                    since?: string;
                    follow?: "true" | "false";
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            lines: {
                                at: string;
                                /** @enum {unknown} */
                                stream: "stdout" | "stderr";
                                text: string;
                            }[];
                            /** @description Earlier lines were left out, because all together would be too large */
                            truncated: boolean;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * SQL sessions of a tenant
         * @description With `statements=true`, which needs the scope admin, also the texts of their statements.
         */
        get: {
            parameters: {
                query?: {
                    statements?: "true" | "false";
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            sessions: {
                                pid: number;
                                /**
                                 * @description `admin` is the login of `database_url`
                                 * @enum {unknown}
                                 */
                                login: "runtime" | "ddl" | "admin" | "system";
                                /** @description Address of the client of Postgres, which may be a gateway; null for a socket */
                                client_address: string | null;
                                application_name: string;
                                /** @description The state in Postgres' `pg_stat_activity` */
                                state: string;
                                started_at: string;
                                /** @description null without a transaction */
                                transaction_started_at: string | null;
                                /** @description Begin of the current or last statement */
                                statement_started_at: string | null;
                                /** @description What it waits for, as type and event of Postgres */
                                wait: string | null;
                                /** @description null if it could not be read */
                                memory_bytes: number | null;
                                temporary_bytes: number;
                                /** @description Entries in the server's table of locks */
                                locks: number;
                                /** @description Text of the current or last statement, if it was requested */
                                statement?: string | null;
                            }[];
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/sessions/{pid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** End an SQL session of a tenant */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    pid: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Usage of the current month */
        get: {
            parameters: {
                query?: {
                    /** @description A series instead of sums */
                    granularity?: "hour" | "day";
                    /** @description Only this resource */
                    resource?: "api_requests" | "storage" | "egress" | "realtime_connections" | "realtime_messages" | "functions";
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description JSON or CSV, as `Accept` selects */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            month: string;
                            /** @description Sources that may still have counts of hours that should be closed by now */
                            missing_sources: string[];
                            period: {
                                start: string;
                                end: string;
                            };
                            /** @description True while counts of the month may still arrive */
                            incomplete: boolean;
                            resources: {
                                api_requests?: {
                                    count: number;
                                    limit: number | null;
                                    refused: number;
                                    rejected: number;
                                    rejected_by_status: {
                                        [key: string]: number;
                                    };
                                    by_group: {
                                        [key: string]: number;
                                    };
                                    by_method: {
                                        [key: string]: number;
                                    };
                                    by_status: {
                                        [key: string]: number;
                                    };
                                    endpoints: {
                                        group: string;
                                        method: string;
                                        status: string;
                                        count: number;
                                    }[];
                                    /** @description By group: the requests that took at most so many milliseconds, and more than the bound before */
                                    latency_ms: {
                                        [key: string]: {
                                            [key: string]: number;
                                        };
                                    };
                                };
                                storage?: {
                                    documents_bytes: number | null;
                                    documents_limit: number | null;
                                    documents_byte_hours: number;
                                    files_bytes: number | null;
                                    files_count: number | null;
                                    files_limit: number | null;
                                    files_byte_hours: number;
                                };
                                egress?: {
                                    bytes: number;
                                    by_group: {
                                        [key: string]: number;
                                    };
                                };
                                realtime_connections?: {
                                    peak: number;
                                    average: number;
                                    limit: number | null;
                                };
                                realtime_messages?: {
                                    count: number;
                                };
                                functions?: {
                                    invocations: number | null;
                                    duration_ms: number;
                                    cpu_ms: number;
                                    memory_mib_seconds: number;
                                };
                            };
                            corrections: {
                                number: number;
                                hour: string;
                                /** @description Whole numbers as decimal digits, by name; exact at any size */
                                amounts: {
                                    [key: string]: string;
                                };
                                billed_month: string;
                                recorded_at: string;
                                previous_hash: string;
                                hash: string;
                            }[];
                            /** @description The present usage of the tenant's own services by their names; null for a service that does not run or respond */
                            components?: {
                                [key: string]: {
                                    /** @description Since its container was started */
                                    cpu_seconds: number | null;
                                    memory_bytes: number | null;
                                    disk_bytes: number | null;
                                };
                            };
                        } | {
                            tenant_id: string;
                            month: string;
                            /** @description Sources that may still have counts of hours that should be closed by now */
                            missing_sources: string[];
                            period: {
                                start: string;
                                end: string;
                            };
                            /** @description True while counts of the month may still arrive */
                            incomplete: boolean;
                            /** @enum {unknown} */
                            granularity: "hour" | "day";
                            parts: {
                                start: string;
                                closed: boolean;
                                /** @description Whole numbers as decimal digits, by name; exact at any size */
                                amounts: {
                                    [key: string]: string;
                                };
                                previous_hash?: string;
                                hash?: string;
                            }[];
                            corrections: {
                                number: number;
                                hour: string;
                                /** @description Whole numbers as decimal digits, by name; exact at any size */
                                amounts: {
                                    [key: string]: string;
                                };
                                billed_month: string;
                                recorded_at: string;
                                previous_hash: string;
                                hash: string;
                            }[];
                        };
                        "text/csv": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/usage/{month}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Usage of a month, YYYY-MM
         * @description A month before the tenant existed has usage zero. A deleted tenant keeps its usage.
         */
        get: {
            parameters: {
                query?: {
                    /** @description A series instead of sums */
                    granularity?: "hour" | "day";
                    /** @description Only this resource */
                    resource?: "api_requests" | "storage" | "egress" | "realtime_connections" | "realtime_messages" | "functions";
                };
                header?: never;
                path: {
                    id: string;
                    month: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description JSON or CSV, as `Accept` selects */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            month: string;
                            /** @description Sources that may still have counts of hours that should be closed by now */
                            missing_sources: string[];
                            period: {
                                start: string;
                                end: string;
                            };
                            /** @description True while counts of the month may still arrive */
                            incomplete: boolean;
                            resources: {
                                api_requests?: {
                                    count: number;
                                    limit: number | null;
                                    refused: number;
                                    rejected: number;
                                    rejected_by_status: {
                                        [key: string]: number;
                                    };
                                    by_group: {
                                        [key: string]: number;
                                    };
                                    by_method: {
                                        [key: string]: number;
                                    };
                                    by_status: {
                                        [key: string]: number;
                                    };
                                    endpoints: {
                                        group: string;
                                        method: string;
                                        status: string;
                                        count: number;
                                    }[];
                                    /** @description By group: the requests that took at most so many milliseconds, and more than the bound before */
                                    latency_ms: {
                                        [key: string]: {
                                            [key: string]: number;
                                        };
                                    };
                                };
                                storage?: {
                                    documents_bytes: number | null;
                                    documents_limit: number | null;
                                    documents_byte_hours: number;
                                    files_bytes: number | null;
                                    files_count: number | null;
                                    files_limit: number | null;
                                    files_byte_hours: number;
                                };
                                egress?: {
                                    bytes: number;
                                    by_group: {
                                        [key: string]: number;
                                    };
                                };
                                realtime_connections?: {
                                    peak: number;
                                    average: number;
                                    limit: number | null;
                                };
                                realtime_messages?: {
                                    count: number;
                                };
                                functions?: {
                                    invocations: number | null;
                                    duration_ms: number;
                                    cpu_ms: number;
                                    memory_mib_seconds: number;
                                };
                            };
                            corrections: {
                                number: number;
                                hour: string;
                                /** @description Whole numbers as decimal digits, by name; exact at any size */
                                amounts: {
                                    [key: string]: string;
                                };
                                billed_month: string;
                                recorded_at: string;
                                previous_hash: string;
                                hash: string;
                            }[];
                            /** @description The present usage of the tenant's own services by their names; null for a service that does not run or respond */
                            components?: {
                                [key: string]: {
                                    /** @description Since its container was started */
                                    cpu_seconds: number | null;
                                    memory_bytes: number | null;
                                    disk_bytes: number | null;
                                };
                            };
                        } | {
                            tenant_id: string;
                            month: string;
                            /** @description Sources that may still have counts of hours that should be closed by now */
                            missing_sources: string[];
                            period: {
                                start: string;
                                end: string;
                            };
                            /** @description True while counts of the month may still arrive */
                            incomplete: boolean;
                            /** @enum {unknown} */
                            granularity: "hour" | "day";
                            parts: {
                                start: string;
                                closed: boolean;
                                /** @description Whole numbers as decimal digits, by name; exact at any size */
                                amounts: {
                                    [key: string]: string;
                                };
                                previous_hash?: string;
                                hash?: string;
                            }[];
                            corrections: {
                                number: number;
                                hour: string;
                                /** @description Whole numbers as decimal digits, by name; exact at any size */
                                amounts: {
                                    [key: string]: string;
                                };
                                billed_month: string;
                                recorded_at: string;
                                previous_hash: string;
                                hash: string;
                            }[];
                        };
                        "text/csv": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Usage of all tenants in a month, by their ids */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `next_cursor` of the previous page */
                    cursor?: string;
                    /** @description `YYYY-MM`; the current month when absent */
                    month?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description JSON or CSV, as `Accept` selects */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            month: string;
                            /** @description Sources that may still have counts of hours that should be closed by now */
                            missing_sources: string[];
                            period: {
                                start: string;
                                end: string;
                            };
                            tenants: {
                                tenant_id: string;
                                /** @description Null for a deleted tenant */
                                name: string | null;
                                incomplete: boolean;
                                /** @description Whole numbers as decimal digits, by name; exact at any size */
                                amounts: {
                                    [key: string]: string;
                                };
                            }[];
                            next_cursor: string | null;
                        };
                        "text/csv": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/usage/sources": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the sources that count usage, and how far each is complete */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `next_cursor` of the previous page */
                    cursor?: string;
                    kind?: "gateway" | "home";
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            sources: {
                                source: string;
                                /** @description The tenant, for the source of a home; null for a gateway, which counts for all tenants */
                                tenant_id: string | null;
                                /** @description All counts of the hours before have arrived */
                                complete_until: string;
                                first_seen_at: string;
                                last_seen_at: string;
                                retired_at: string | null;
                            }[];
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/usage/sources/{source}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Retire a source that is gone for good: hours close without it */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    source: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            source: string;
                            /** @description The tenant, for the source of a home; null for a gateway, which counts for all tenants */
                            tenant_id: string | null;
                            /** @description All counts of the hours before have arrived */
                            complete_until: string;
                            first_seen_at: string;
                            last_seen_at: string;
                            retired_at: string | null;
                        };
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/invoices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A tenant's invoices, oldest first; also when the tenant is gone
         * @description JSON, or CSV by `Accept: text/csv` or the extension.
         */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `next_cursor` of the previous page */
                    cursor?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            invoices: {
                                invoice_id: string;
                                /** @description Without a gap over all invoices; null for a draft */
                                number: string | null;
                                /** @enum {unknown} */
                                state: "draft" | "final" | "void";
                                /** @description ISO 8601, UTC */
                                created_at: string;
                                final_at: string | null;
                                voided_at: string | null;
                                void_reason: string | null;
                                tenant_id: string;
                                /** @description As it was when the invoice was made; absent from older invoices */
                                tenant_name?: string;
                                /** @description YYYY-MM */
                                month: string;
                                currency: string;
                                net: string;
                                taxes: {
                                    name: string;
                                    rate: string;
                                    net: string;
                                    tax: string;
                                }[];
                                total: string;
                                /** @description The total in whole minor units of the currency */
                                payable: string;
                            }[];
                            next_cursor: string | null;
                        };
                        "text/csv": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/invoices.csv": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A tenant's invoices, oldest first; also when the tenant is gone
         * @description JSON, or CSV by `Accept: text/csv` or the extension.
         */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `next_cursor` of the previous page */
                    cursor?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            invoices: {
                                invoice_id: string;
                                /** @description Without a gap over all invoices; null for a draft */
                                number: string | null;
                                /** @enum {unknown} */
                                state: "draft" | "final" | "void";
                                /** @description ISO 8601, UTC */
                                created_at: string;
                                final_at: string | null;
                                voided_at: string | null;
                                void_reason: string | null;
                                tenant_id: string;
                                /** @description As it was when the invoice was made; absent from older invoices */
                                tenant_name?: string;
                                /** @description YYYY-MM */
                                month: string;
                                currency: string;
                                net: string;
                                taxes: {
                                    name: string;
                                    rate: string;
                                    net: string;
                                    tax: string;
                                }[];
                                total: string;
                                /** @description The total in whole minor units of the currency */
                                payable: string;
                            }[];
                            next_cursor: string | null;
                        };
                        "text/csv": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/invoices/{invoice}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One invoice with its lines, as JSON, CSV or PDF
         * @description The extension or `Accept` selects the form. A month names its invoice that is not void.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    /** @description The invoice's id, or its month as YYYY-MM; `.json`, `.csv` or `.pdf` may follow */
                    invoice: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            invoice_id: string;
                            /** @description Without a gap over all invoices; null for a draft */
                            number: string | null;
                            /** @enum {unknown} */
                            state: "draft" | "final" | "void";
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            final_at: string | null;
                            voided_at: string | null;
                            void_reason: string | null;
                            tenant_id: string;
                            /** @description As it was when the invoice was made; absent from older invoices */
                            tenant_name?: string;
                            /** @description YYYY-MM */
                            month: string;
                            period: {
                                /** @description ISO 8601, UTC */
                                start: string;
                                /** @description ISO 8601, UTC */
                                end: string;
                            };
                            currency: string;
                            seller: {
                                name: string;
                                lines: string[];
                            };
                            buyer: {
                                name: string;
                                lines: string[];
                            };
                            notes: string[];
                            lines: {
                                charge: "fee" | "usage" | "minimum" | "adjustment";
                                /** @description YYYY-MM */
                                month: string;
                                correction: boolean;
                                plan: string | null;
                                from: string | null;
                                to: string | null;
                                resource: string | null;
                                tier: number | null;
                                unit: string | null;
                                unit_price: string | null;
                                /** @description In the resource's base amount, e.g. bytes */
                                quantity: string | null;
                                amount: string;
                                /** @description The amount before it was rounded; absent from invoices whose lines are not rounded */
                                exact_amount?: string;
                                tax_rate: string;
                                /** @description The tenant's isolation model, on fees where it is weaker than the plan's */
                                isolation?: string;
                                /** @description On lines of adjustments only */
                                adjustment_id?: string;
                                /** @description The operator's description, on lines of adjustments only */
                                adjustment_text?: string;
                                description: string;
                                /** @description The quantity in units, rounded to six decimal places, e.g. `1.5 GB` */
                                quantity_text: string | null;
                            }[];
                            net: string;
                            taxes: {
                                name: string;
                                rate: string;
                                net: string;
                                tax: string;
                            }[];
                            total: string;
                            /** @description The total in whole minor units of the currency */
                            payable: string;
                            basis: {
                                line_places?: number;
                                months: {
                                    /** @description YYYY-MM */
                                    month: string;
                                    prices: {
                                        currency: string;
                                        tax: {
                                            name: string;
                                            /** @description Decimal number of at most six decimal places */
                                            percent: string;
                                        };
                                        plans: {
                                            [key: string]: {
                                                /** @description Decimal number of at most six decimal places */
                                                fee: string;
                                                /** @description Decimal number of at most six decimal places */
                                                minimum?: string;
                                                weaker_isolation?: {
                                                    [key: string]: {
                                                        /** @description Decimal number of at most six decimal places */
                                                        fee: string;
                                                        /** @description Decimal number of at most six decimal places */
                                                        minimum?: string;
                                                    };
                                                };
                                                resources?: {
                                                    [key: string]: {
                                                        unit: string;
                                                        /** @description Decimal number of at most six decimal places */
                                                        included?: string;
                                                        tiers: {
                                                            /** @description Decimal number of at most six decimal places */
                                                            up_to?: string;
                                                            /** @description Decimal number of at most six decimal places */
                                                            price: string;
                                                        }[];
                                                    };
                                                };
                                            };
                                        };
                                    };
                                    plan_periods: {
                                        plan: string;
                                        weaker_isolation?: string;
                                        /** @description ISO 8601, UTC */
                                        since: string;
                                        /** @description ISO 8601, UTC */
                                        until: string;
                                    }[];
                                    usage: {
                                        hours: number;
                                        previous: string;
                                        hash: string;
                                    };
                                }[];
                                corrections: {
                                    number: number;
                                    hash: string;
                                } | null;
                                adjustments?: {
                                    adjustment_id: string;
                                    description: string;
                                    amount: string;
                                    /** @description ISO 8601, UTC */
                                    created_at: string;
                                }[];
                            };
                        };
                        "text/csv": string;
                        "application/pdf": unknown;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/invoices/upcoming": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A preview of the current month's invoice
         * @description Includes the hours that are closed so far, and the present plan until the end of the month. JSON, CSV or PDF, by the extension or by `Accept`. It is not an invoice and is not stored.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** @enum {string} */
                            state: "upcoming";
                            number: null;
                            /** @description Usage of the hours before this is in it; ISO 8601, UTC */
                            as_of: string;
                            tenant_id: string;
                            /** @description As it was when the invoice was made; absent from older invoices */
                            tenant_name?: string;
                            /** @description YYYY-MM */
                            month: string;
                            period: {
                                /** @description ISO 8601, UTC */
                                start: string;
                                /** @description ISO 8601, UTC */
                                end: string;
                            };
                            currency: string;
                            seller: {
                                name: string;
                                lines: string[];
                            };
                            buyer: {
                                name: string;
                                lines: string[];
                            };
                            notes: string[];
                            lines: {
                                charge: "fee" | "usage" | "minimum" | "adjustment";
                                /** @description YYYY-MM */
                                month: string;
                                correction: boolean;
                                plan: string | null;
                                from: string | null;
                                to: string | null;
                                resource: string | null;
                                tier: number | null;
                                unit: string | null;
                                unit_price: string | null;
                                /** @description In the resource's base amount, e.g. bytes */
                                quantity: string | null;
                                amount: string;
                                /** @description The amount before it was rounded; absent from invoices whose lines are not rounded */
                                exact_amount?: string;
                                tax_rate: string;
                                /** @description The tenant's isolation model, on fees where it is weaker than the plan's */
                                isolation?: string;
                                /** @description On lines of adjustments only */
                                adjustment_id?: string;
                                /** @description The operator's description, on lines of adjustments only */
                                adjustment_text?: string;
                                description: string;
                                /** @description The quantity in units, rounded to six decimal places, e.g. `1.5 GB` */
                                quantity_text: string | null;
                            }[];
                            net: string;
                            taxes: {
                                name: string;
                                rate: string;
                                net: string;
                                tax: string;
                            }[];
                            total: string;
                            /** @description The total in whole minor units of the currency */
                            payable: string;
                            basis: {
                                line_places?: number;
                                months: {
                                    /** @description YYYY-MM */
                                    month: string;
                                    prices: {
                                        currency: string;
                                        tax: {
                                            name: string;
                                            /** @description Decimal number of at most six decimal places */
                                            percent: string;
                                        };
                                        plans: {
                                            [key: string]: {
                                                /** @description Decimal number of at most six decimal places */
                                                fee: string;
                                                /** @description Decimal number of at most six decimal places */
                                                minimum?: string;
                                                weaker_isolation?: {
                                                    [key: string]: {
                                                        /** @description Decimal number of at most six decimal places */
                                                        fee: string;
                                                        /** @description Decimal number of at most six decimal places */
                                                        minimum?: string;
                                                    };
                                                };
                                                resources?: {
                                                    [key: string]: {
                                                        unit: string;
                                                        /** @description Decimal number of at most six decimal places */
                                                        included?: string;
                                                        tiers: {
                                                            /** @description Decimal number of at most six decimal places */
                                                            up_to?: string;
                                                            /** @description Decimal number of at most six decimal places */
                                                            price: string;
                                                        }[];
                                                    };
                                                };
                                            };
                                        };
                                    };
                                    plan_periods: {
                                        plan: string;
                                        weaker_isolation?: string;
                                        /** @description ISO 8601, UTC */
                                        since: string;
                                        /** @description ISO 8601, UTC */
                                        until: string;
                                    }[];
                                    usage: {
                                        hours: number;
                                        previous: string;
                                        hash: string;
                                    };
                                }[];
                                corrections: {
                                    number: number;
                                    hash: string;
                                } | null;
                                adjustments?: {
                                    adjustment_id: string;
                                    description: string;
                                    amount: string;
                                    /** @description ISO 8601, UTC */
                                    created_at: string;
                                }[];
                            };
                        };
                        "text/csv": string;
                        "application/pdf": unknown;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/invoices/upcoming.{extension}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A preview of the current month's invoice
         * @description Includes the hours that are closed so far, and the present plan until the end of the month. JSON, CSV or PDF, by the extension or by `Accept`. It is not an invoice and is not stored.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    /** @description `json`, `csv` or `pdf` */
                    extension: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** @enum {string} */
                            state: "upcoming";
                            number: null;
                            /** @description Usage of the hours before this is in it; ISO 8601, UTC */
                            as_of: string;
                            tenant_id: string;
                            /** @description As it was when the invoice was made; absent from older invoices */
                            tenant_name?: string;
                            /** @description YYYY-MM */
                            month: string;
                            period: {
                                /** @description ISO 8601, UTC */
                                start: string;
                                /** @description ISO 8601, UTC */
                                end: string;
                            };
                            currency: string;
                            seller: {
                                name: string;
                                lines: string[];
                            };
                            buyer: {
                                name: string;
                                lines: string[];
                            };
                            notes: string[];
                            lines: {
                                charge: "fee" | "usage" | "minimum" | "adjustment";
                                /** @description YYYY-MM */
                                month: string;
                                correction: boolean;
                                plan: string | null;
                                from: string | null;
                                to: string | null;
                                resource: string | null;
                                tier: number | null;
                                unit: string | null;
                                unit_price: string | null;
                                /** @description In the resource's base amount, e.g. bytes */
                                quantity: string | null;
                                amount: string;
                                /** @description The amount before it was rounded; absent from invoices whose lines are not rounded */
                                exact_amount?: string;
                                tax_rate: string;
                                /** @description The tenant's isolation model, on fees where it is weaker than the plan's */
                                isolation?: string;
                                /** @description On lines of adjustments only */
                                adjustment_id?: string;
                                /** @description The operator's description, on lines of adjustments only */
                                adjustment_text?: string;
                                description: string;
                                /** @description The quantity in units, rounded to six decimal places, e.g. `1.5 GB` */
                                quantity_text: string | null;
                            }[];
                            net: string;
                            taxes: {
                                name: string;
                                rate: string;
                                net: string;
                                tax: string;
                            }[];
                            total: string;
                            /** @description The total in whole minor units of the currency */
                            payable: string;
                            basis: {
                                line_places?: number;
                                months: {
                                    /** @description YYYY-MM */
                                    month: string;
                                    prices: {
                                        currency: string;
                                        tax: {
                                            name: string;
                                            /** @description Decimal number of at most six decimal places */
                                            percent: string;
                                        };
                                        plans: {
                                            [key: string]: {
                                                /** @description Decimal number of at most six decimal places */
                                                fee: string;
                                                /** @description Decimal number of at most six decimal places */
                                                minimum?: string;
                                                weaker_isolation?: {
                                                    [key: string]: {
                                                        /** @description Decimal number of at most six decimal places */
                                                        fee: string;
                                                        /** @description Decimal number of at most six decimal places */
                                                        minimum?: string;
                                                    };
                                                };
                                                resources?: {
                                                    [key: string]: {
                                                        unit: string;
                                                        /** @description Decimal number of at most six decimal places */
                                                        included?: string;
                                                        tiers: {
                                                            /** @description Decimal number of at most six decimal places */
                                                            up_to?: string;
                                                            /** @description Decimal number of at most six decimal places */
                                                            price: string;
                                                        }[];
                                                    };
                                                };
                                            };
                                        };
                                    };
                                    plan_periods: {
                                        plan: string;
                                        weaker_isolation?: string;
                                        /** @description ISO 8601, UTC */
                                        since: string;
                                        /** @description ISO 8601, UTC */
                                        until: string;
                                    }[];
                                    usage: {
                                        hours: number;
                                        previous: string;
                                        hash: string;
                                    };
                                }[];
                                corrections: {
                                    number: number;
                                    hash: string;
                                } | null;
                                adjustments?: {
                                    adjustment_id: string;
                                    description: string;
                                    amount: string;
                                    /** @description ISO 8601, UTC */
                                    created_at: string;
                                }[];
                            };
                        };
                        "text/csv": string;
                        "application/pdf": unknown;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/invoices/close": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make a month's invoice
         * @description For a month whose hours are all closed. An invoice that is final already is returned as it is. With `final: false` a draft, which may be made again.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        /** @description YYYY-MM */
                        month: string;
                        /** @description true by default */
                        final?: boolean;
                    };
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            invoice_id: string;
                            /** @description Without a gap over all invoices; null for a draft */
                            number: string | null;
                            /** @enum {unknown} */
                            state: "draft" | "final" | "void";
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            final_at: string | null;
                            voided_at: string | null;
                            void_reason: string | null;
                            tenant_id: string;
                            /** @description As it was when the invoice was made; absent from older invoices */
                            tenant_name?: string;
                            /** @description YYYY-MM */
                            month: string;
                            period: {
                                /** @description ISO 8601, UTC */
                                start: string;
                                /** @description ISO 8601, UTC */
                                end: string;
                            };
                            currency: string;
                            seller: {
                                name: string;
                                lines: string[];
                            };
                            buyer: {
                                name: string;
                                lines: string[];
                            };
                            notes: string[];
                            lines: {
                                charge: "fee" | "usage" | "minimum" | "adjustment";
                                /** @description YYYY-MM */
                                month: string;
                                correction: boolean;
                                plan: string | null;
                                from: string | null;
                                to: string | null;
                                resource: string | null;
                                tier: number | null;
                                unit: string | null;
                                unit_price: string | null;
                                /** @description In the resource's base amount, e.g. bytes */
                                quantity: string | null;
                                amount: string;
                                /** @description The amount before it was rounded; absent from invoices whose lines are not rounded */
                                exact_amount?: string;
                                tax_rate: string;
                                /** @description The tenant's isolation model, on fees where it is weaker than the plan's */
                                isolation?: string;
                                /** @description On lines of adjustments only */
                                adjustment_id?: string;
                                /** @description The operator's description, on lines of adjustments only */
                                adjustment_text?: string;
                                description: string;
                                /** @description The quantity in units, rounded to six decimal places, e.g. `1.5 GB` */
                                quantity_text: string | null;
                            }[];
                            net: string;
                            taxes: {
                                name: string;
                                rate: string;
                                net: string;
                                tax: string;
                            }[];
                            total: string;
                            /** @description The total in whole minor units of the currency */
                            payable: string;
                            basis: {
                                line_places?: number;
                                months: {
                                    /** @description YYYY-MM */
                                    month: string;
                                    prices: {
                                        currency: string;
                                        tax: {
                                            name: string;
                                            /** @description Decimal number of at most six decimal places */
                                            percent: string;
                                        };
                                        plans: {
                                            [key: string]: {
                                                /** @description Decimal number of at most six decimal places */
                                                fee: string;
                                                /** @description Decimal number of at most six decimal places */
                                                minimum?: string;
                                                weaker_isolation?: {
                                                    [key: string]: {
                                                        /** @description Decimal number of at most six decimal places */
                                                        fee: string;
                                                        /** @description Decimal number of at most six decimal places */
                                                        minimum?: string;
                                                    };
                                                };
                                                resources?: {
                                                    [key: string]: {
                                                        unit: string;
                                                        /** @description Decimal number of at most six decimal places */
                                                        included?: string;
                                                        tiers: {
                                                            /** @description Decimal number of at most six decimal places */
                                                            up_to?: string;
                                                            /** @description Decimal number of at most six decimal places */
                                                            price: string;
                                                        }[];
                                                    };
                                                };
                                            };
                                        };
                                    };
                                    plan_periods: {
                                        plan: string;
                                        weaker_isolation?: string;
                                        /** @description ISO 8601, UTC */
                                        since: string;
                                        /** @description ISO 8601, UTC */
                                        until: string;
                                    }[];
                                    usage: {
                                        hours: number;
                                        previous: string;
                                        hash: string;
                                    };
                                }[];
                                corrections: {
                                    number: number;
                                    hash: string;
                                } | null;
                                adjustments?: {
                                    adjustment_id: string;
                                    description: string;
                                    amount: string;
                                    /** @description ISO 8601, UTC */
                                    created_at: string;
                                }[];
                            };
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/invoices/{invoice}/void": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make a final invoice void
         * @description The invoice stays, with its number. Another one may then be made for its month.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    /** @description The invoice's id */
                    invoice: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        reason: string;
                    };
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            invoice_id: string;
                            /** @description Without a gap over all invoices; null for a draft */
                            number: string | null;
                            /** @enum {unknown} */
                            state: "draft" | "final" | "void";
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            final_at: string | null;
                            voided_at: string | null;
                            void_reason: string | null;
                            tenant_id: string;
                            /** @description As it was when the invoice was made; absent from older invoices */
                            tenant_name?: string;
                            /** @description YYYY-MM */
                            month: string;
                            period: {
                                /** @description ISO 8601, UTC */
                                start: string;
                                /** @description ISO 8601, UTC */
                                end: string;
                            };
                            currency: string;
                            seller: {
                                name: string;
                                lines: string[];
                            };
                            buyer: {
                                name: string;
                                lines: string[];
                            };
                            notes: string[];
                            lines: {
                                charge: "fee" | "usage" | "minimum" | "adjustment";
                                /** @description YYYY-MM */
                                month: string;
                                correction: boolean;
                                plan: string | null;
                                from: string | null;
                                to: string | null;
                                resource: string | null;
                                tier: number | null;
                                unit: string | null;
                                unit_price: string | null;
                                /** @description In the resource's base amount, e.g. bytes */
                                quantity: string | null;
                                amount: string;
                                /** @description The amount before it was rounded; absent from invoices whose lines are not rounded */
                                exact_amount?: string;
                                tax_rate: string;
                                /** @description The tenant's isolation model, on fees where it is weaker than the plan's */
                                isolation?: string;
                                /** @description On lines of adjustments only */
                                adjustment_id?: string;
                                /** @description The operator's description, on lines of adjustments only */
                                adjustment_text?: string;
                                description: string;
                                /** @description The quantity in units, rounded to six decimal places, e.g. `1.5 GB` */
                                quantity_text: string | null;
                            }[];
                            net: string;
                            taxes: {
                                name: string;
                                rate: string;
                                net: string;
                                tax: string;
                            }[];
                            total: string;
                            /** @description The total in whole minor units of the currency */
                            payable: string;
                            basis: {
                                line_places?: number;
                                months: {
                                    /** @description YYYY-MM */
                                    month: string;
                                    prices: {
                                        currency: string;
                                        tax: {
                                            name: string;
                                            /** @description Decimal number of at most six decimal places */
                                            percent: string;
                                        };
                                        plans: {
                                            [key: string]: {
                                                /** @description Decimal number of at most six decimal places */
                                                fee: string;
                                                /** @description Decimal number of at most six decimal places */
                                                minimum?: string;
                                                weaker_isolation?: {
                                                    [key: string]: {
                                                        /** @description Decimal number of at most six decimal places */
                                                        fee: string;
                                                        /** @description Decimal number of at most six decimal places */
                                                        minimum?: string;
                                                    };
                                                };
                                                resources?: {
                                                    [key: string]: {
                                                        unit: string;
                                                        /** @description Decimal number of at most six decimal places */
                                                        included?: string;
                                                        tiers: {
                                                            /** @description Decimal number of at most six decimal places */
                                                            up_to?: string;
                                                            /** @description Decimal number of at most six decimal places */
                                                            price: string;
                                                        }[];
                                                    };
                                                };
                                            };
                                        };
                                    };
                                    plan_periods: {
                                        plan: string;
                                        weaker_isolation?: string;
                                        /** @description ISO 8601, UTC */
                                        since: string;
                                        /** @description ISO 8601, UTC */
                                        until: string;
                                    }[];
                                    usage: {
                                        hours: number;
                                        previous: string;
                                        hash: string;
                                    };
                                }[];
                                corrections: {
                                    number: number;
                                    hash: string;
                                } | null;
                                adjustments?: {
                                    adjustment_id: string;
                                    description: string;
                                    amount: string;
                                    /** @description ISO 8601, UTC */
                                    created_at: string;
                                }[];
                            };
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/buyer": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The party that is invoiced for a tenant */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            name: string;
                            lines: string[];
                        };
                    };
                };
            };
        };
        /**
         * Set who is invoiced for a tenant
         * @description Applies to the invoices that are made from now on.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        name: string;
                        lines: string[];
                    };
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            name: string;
                            lines: string[];
                        };
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/adjustments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A tenant's credits and one-time charges, oldest first */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `next_cursor` of the previous page */
                    cursor?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            adjustments: {
                                adjustment_id: string;
                                description: string;
                                /** @description Net, six decimal places; a credit is negative */
                                amount: string;
                                currency: string;
                                /** @description ISO 8601, UTC */
                                created_at: string;
                                /** @description The draft or final invoice that the adjustment is on */
                                invoice: {
                                    invoice_id: string;
                                    number: string | null;
                                    month: string;
                                    /** @enum {unknown} */
                                    state: "draft" | "final" | "void";
                                } | null;
                            }[];
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        put?: never;
        /**
         * Give a tenant a credit or a one-time charge
         * @description Becomes a line of the tenant's next invoice, taxed as its other lines.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        description: string;
                        /** @description Net: a decimal number of at most nine digits and six decimal places, not 0; `-` before it makes it a credit */
                        amount: string;
                    };
                };
            };
            responses: {
                /** @description Default Response */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            adjustment_id: string;
                            description: string;
                            /** @description Net, six decimal places; a credit is negative */
                            amount: string;
                            currency: string;
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description The draft or final invoice that the adjustment is on */
                            invoice: {
                                invoice_id: string;
                                number: string | null;
                                month: string;
                                /** @enum {unknown} */
                                state: "draft" | "final" | "void";
                            } | null;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/adjustments/{adjustment}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Delete a credit or charge that is on no final invoice */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    adjustment: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            adjustment_id: string;
                            description: string;
                            /** @description Net, six decimal places; a credit is negative */
                            amount: string;
                            currency: string;
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description The draft or final invoice that the adjustment is on */
                            invoice: {
                                invoice_id: string;
                                number: string | null;
                                month: string;
                                /** @enum {unknown} */
                                state: "draft" | "final" | "void";
                            } | null;
                        };
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/spending-limit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A tenant's spending limit, with its last check */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            /** @description The limit of a month, tax included, with the currency's decimal places */
                            amount: string;
                            currency: string;
                            /**
                             * @description At 100 %: `reject` the tenant's requests at the gateways, or only `notify` operators
                             * @enum {unknown}
                             */
                            action: "reject" | "notify";
                            /** @description The current month, YYYY-MM */
                            month: string;
                            /** @description The total of the upcoming invoice at the last check of this month */
                            upcoming: string | null;
                            /** @description of the limit, rounded down */
                            percent: number | null;
                            /** @description The time until which the tenant's requests are rejected; null if they are not */
                            rejects_until: string | null;
                            /** @description The last check of this month */
                            checked_at: string | null;
                        };
                    };
                };
            };
        };
        /**
         * Set what a tenant may spend in a month
         * @description The limit is compared with the total of the upcoming invoice, at once and then each minute. Operators are notified at 80 % and 100 %.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        /** @description A decimal number with at most the currency's decimal places */
                        amount: string;
                        /**
                         * @description `reject` by default
                         * @enum {unknown}
                         */
                        action?: "reject" | "notify";
                    };
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            /** @description The limit of a month, tax included, with the currency's decimal places */
                            amount: string;
                            currency: string;
                            /**
                             * @description At 100 %: `reject` the tenant's requests at the gateways, or only `notify` operators
                             * @enum {unknown}
                             */
                            action: "reject" | "notify";
                            /** @description The current month, YYYY-MM */
                            month: string;
                            /** @description The total of the upcoming invoice at the last check of this month */
                            upcoming: string | null;
                            /** @description of the limit, rounded down */
                            percent: number | null;
                            /** @description The time until which the tenant's requests are rejected; null if they are not */
                            rejects_until: string | null;
                            /** @description The last check of this month */
                            checked_at: string | null;
                        };
                    };
                };
            };
        };
        post?: never;
        /** Remove a tenant's spending limit */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List operations, oldest first unless `order` is `newest` */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `next_cursor` of the previous page */
                    cursor?: string;
                    tenant_id?: string;
                    kind?: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                    state?: "pending" | "running" | "succeeded" | "failed" | "superseded";
                    /** @description Which are first, default `oldest` */
                    order?: "oldest" | "newest";
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            operations: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            }[];
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/operations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Return an operation */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            tenant_id: string;
                            /** @enum {unknown} */
                            kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                            /** @enum {unknown} */
                            state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                            step: string | null;
                            attempts: number;
                            error: string | null;
                            /** @description ISO 8601, UTC */
                            created: string;
                            started: string | null;
                            finished: string | null;
                            /** @description The progress of an operation of the kind `move` */
                            move?: {
                                /** @description The database that the home leaves */
                                from: string;
                                to: string;
                                from_region: string | null;
                                to_region: string | null;
                                from_isolation: string | null;
                                to_isolation: string | null;
                                /** @description Rows that are copied, with those of changes */
                                rows: number;
                                /** @description Bytes of the rows as COPY writes them */
                                bytes: number;
                                /** @description Bytes of the write-ahead log that are still to be read */
                                pending_bytes: number | null;
                                waits_for: string | null;
                                reverts: string | null;
                                revertible_until: string | null;
                                not_revertible_reason: string | null;
                            };
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/plans": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Plans and their quotas */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            plans: {
                                id: string;
                                isolation: string;
                                quotas: {
                                    /** @description null is unlimited */
                                    documents_bytes: number | null;
                                    /** @description null is unlimited */
                                    files_bytes: number | null;
                                    /** @description null is unlimited */
                                    api_requests_per_month: number | null;
                                    /** @description null is unlimited */
                                    realtime_connections: number | null;
                                };
                                /** @description The rate of requests at each gateway; null is unlimited */
                                rate_limit: {
                                    per_second: number;
                                    burst: number;
                                } | null;
                            }[];
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/regions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Regions and their isolation models */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            regions: {
                                id: string;
                                engine: string;
                                domain: string;
                                isolations: string[];
                                /** @description The conditions at the last check; empty without a check */
                                conditions: {
                                    type: string;
                                    status: string;
                                    reason: string;
                                    message: string;
                                    /** @description ISO 8601, UTC */
                                    observed_at: string;
                                }[];
                            }[];
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/prices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Price lists, each with the month from which it applies */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            currency: string;
                            price_lists: {
                                /** @description YYYY-MM */
                                from: string;
                                tax: {
                                    name: string;
                                    /** @description Decimal number of at most six decimal places */
                                    percent: string;
                                };
                                plans: {
                                    [key: string]: {
                                        /** @description Decimal number of at most six decimal places */
                                        fee: string;
                                        /** @description Decimal number of at most six decimal places */
                                        minimum?: string;
                                        weaker_isolation?: {
                                            [key: string]: {
                                                /** @description Decimal number of at most six decimal places */
                                                fee: string;
                                                /** @description Decimal number of at most six decimal places */
                                                minimum?: string;
                                            };
                                        };
                                        resources?: {
                                            [key: string]: {
                                                unit: string;
                                                /** @description Decimal number of at most six decimal places */
                                                included?: string;
                                                tiers: {
                                                    /** @description Decimal number of at most six decimal places */
                                                    up_to?: string;
                                                    /** @description Decimal number of at most six decimal places */
                                                    price: string;
                                                }[];
                                            };
                                        };
                                    };
                                };
                            }[];
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/regions/{id}/superuser-password/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a new password for the superuser of a region's shared Postgres
         * @description Only the control plane logs in as superuser, and no response contains the password. It is set within seconds: then the audit log has an entry `superuser_password.rotate` of the region, and the old password is dead. A request during a replacement begins no other.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            region: string;
                            /** @enum {string} */
                            state: "in_progress";
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rollouts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List rollouts, oldest first */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `next_cursor` of the previous page */
                    cursor?: string;
                    region?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            rollouts: {
                                id: string;
                                region: string;
                                /** @enum {unknown} */
                                component: "runtime" | "postgres" | "cluster-member";
                                image: string;
                                /** @description Digest of the image when the rollout was created */
                                image_id: string;
                                /** @enum {unknown} */
                                state: "running" | "rolling_back" | "succeeded" | "rolled_back" | "failed";
                                /** @description Waves that have begun */
                                wave: number;
                                canary: string | null;
                                wave_size: number;
                                soak_seconds: number;
                                deadline_seconds: number;
                                /** @description Tenants that have the new image */
                                moved: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                finished: string | null;
                            }[];
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        put?: never;
        /**
         * Change the image of a region's dedicated tenants
         * @description One tenant is first, and the rest follow in growing waves. At the first unhealthy tenant, all get their former image back.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        region: string;
                        /** @enum {unknown} */
                        component: "runtime" | "postgres" | "cluster-member";
                        /** @description name:tag, name@sha256:… or sha256:… of an image on the engine with the label org.tenantry.component */
                        image: string;
                        /** @description Tenant that is moved first; default: the region's oldest running tenant */
                        canary?: string;
                        /** @description Maximum size of the waves, which have 1, 2, 4 … tenants; default 8 */
                        wave_size?: number;
                        /** @description Time in which each tenant of a wave must stay healthy; default 10 */
                        soak_seconds?: number;
                        /** @description Time in which each tenant must become healthy; default 120, for cluster-member 600 */
                        deadline_seconds?: number;
                    };
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            region: string;
                            /** @enum {unknown} */
                            component: "runtime" | "postgres" | "cluster-member";
                            image: string;
                            /** @description Digest of the image when the rollout was created */
                            image_id: string;
                            /** @enum {unknown} */
                            state: "running" | "rolling_back" | "succeeded" | "rolled_back" | "failed";
                            /** @description Waves that have begun */
                            wave: number;
                            canary: string | null;
                            wave_size: number;
                            soak_seconds: number;
                            deadline_seconds: number;
                            /** @description Tenants that have the new image */
                            moved: number;
                            error: string | null;
                            /** @description ISO 8601, UTC */
                            created: string;
                            finished: string | null;
                            tenants: {
                                tenant_id: string;
                                /** @description 0: stopped or unhealthy before the rollout, which does not wait for it */
                                wave: number;
                                /** @enum {unknown} */
                                state: "moving" | "moved" | "returning" | "returned" | "lost" | "gone";
                                /** @description Digest of the former image */
                                from: string;
                            }[];
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rollouts/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Return a rollout with the tenants that it has moved */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            region: string;
                            /** @enum {unknown} */
                            component: "runtime" | "postgres" | "cluster-member";
                            image: string;
                            /** @description Digest of the image when the rollout was created */
                            image_id: string;
                            /** @enum {unknown} */
                            state: "running" | "rolling_back" | "succeeded" | "rolled_back" | "failed";
                            /** @description Waves that have begun */
                            wave: number;
                            canary: string | null;
                            wave_size: number;
                            soak_seconds: number;
                            deadline_seconds: number;
                            /** @description Tenants that have the new image */
                            moved: number;
                            error: string | null;
                            /** @description ISO 8601, UTC */
                            created: string;
                            finished: string | null;
                            tenants: {
                                tenant_id: string;
                                /** @description 0: stopped or unhealthy before the rollout, which does not wait for it */
                                wave: number;
                                /** @enum {unknown} */
                                state: "moving" | "moved" | "returning" | "returned" | "lost" | "gone";
                                /** @description Digest of the former image */
                                from: string;
                            }[];
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/rollouts/{id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a rollout
         * @description Each tenant that it has moved gets its former image back.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            region: string;
                            /** @enum {unknown} */
                            component: "runtime" | "postgres" | "cluster-member";
                            image: string;
                            /** @description Digest of the image when the rollout was created */
                            image_id: string;
                            /** @enum {unknown} */
                            state: "running" | "rolling_back" | "succeeded" | "rolled_back" | "failed";
                            /** @description Waves that have begun */
                            wave: number;
                            canary: string | null;
                            wave_size: number;
                            soak_seconds: number;
                            deadline_seconds: number;
                            /** @description Tenants that have the new image */
                            moved: number;
                            error: string | null;
                            /** @description ISO 8601, UTC */
                            created: string;
                            finished: string | null;
                            tenants: {
                                tenant_id: string;
                                /** @description 0: stopped or unhealthy before the rollout, which does not wait for it */
                                wave: number;
                                /** @enum {unknown} */
                                state: "moving" | "moved" | "returning" | "returned" | "lost" | "gone";
                                /** @description Digest of the former image */
                                from: string;
                            }[];
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/regions/{id}/databases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List a region's shared databases, oldest first
         * @description They are measured every five minutes.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            databases: {
                                name: string;
                                /** @description Homes of tenants, and those that are made in advance */
                                homes: number;
                                max_homes: number;
                                /** @description null is unlimited */
                                max_bytes: number | null;
                                /** @description The limits that the database exceeds */
                                exceeds: ("homes" | "bytes")[];
                                /** @description null before the first measurement */
                                bytes: number | null;
                                /** @description ISO 8601, UTC */
                                measured_at: string | null;
                            }[];
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/regions/{id}/databases/{database}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change the limits of a shared database
         * @description New tenants are not created in a database at its limit. Only a rebalance moves homes out of it.
         */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    database: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        max_homes?: number;
                        /** @description null is unlimited */
                        max_bytes?: number | null;
                    };
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            name: string;
                            /** @description Homes of tenants, and those that are made in advance */
                            homes: number;
                            max_homes: number;
                            /** @description null is unlimited */
                            max_bytes: number | null;
                            /** @description The limits that the database exceeds */
                            exceeds: ("homes" | "bytes")[];
                            /** @description null before the first measurement */
                            bytes: number | null;
                            /** @description ISO 8601, UTC */
                            measured_at: string | null;
                        };
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/regions/{id}/rebalance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Move homes out of shared databases that exceed a limit, and services of clusters between hosts
         * @description With `dry_run`, which is the default, the response is the plan, and nothing changes. Otherwise, its moves begin, two at a time, and each is an operation of its tenant. In a region with several hosts, services of clusters move from the host with the smallest part of free memory to that with the largest, and switchovers spread the primaries.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        dry_run?: boolean;
                    };
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            region: string;
                            /** @description At most 200 */
                            moves: {
                                tenant_id: string;
                                from: string;
                                to: string;
                                /** @description The size of the home when the move was planned */
                                bytes: number;
                            }[];
                            /** @description The databases as they would be, also those that would be opened */
                            databases_after: {
                                name: string;
                                /** @description Homes of tenants, and those that are made in advance */
                                homes: number;
                                max_homes: number;
                                /** @description null is unlimited */
                                max_bytes: number | null;
                                /** @description The limits that the database exceeds */
                                exceeds: ("homes" | "bytes")[];
                                bytes: number;
                            }[];
                            /** @description Moves of services of clusters between hosts, at most 200; none in a region with one host */
                            service_moves: {
                                tenant_id: string;
                                service: string;
                                /** @description ID of the host in its region */
                                from: string;
                                /** @description ID of the host in its region */
                                to: string;
                                /** @description The memory that the service reserves */
                                memory_bytes: number;
                            }[];
                            /** @description Switchovers that spread the primaries of clusters, at most 200; none in a region with one host */
                            switchovers: {
                                tenant_id: string;
                                /** @description The service of the primary */
                                from: string;
                                /** @description The service of the member that becomes the primary */
                                to: string;
                                /** @description ID of the host in its region */
                                from_host: string;
                                /** @description ID of the host in its region */
                                to_host: string;
                            }[];
                            /** @description The hosts that receive services, as they would be; none in a region with one host */
                            hosts_after: {
                                /** @description ID of the host in its region */
                                id: string;
                                zone: string | null;
                                /** @description The memory that services of tenants can reserve */
                                memory_bytes: number;
                                /** @description The part of it that none reserves */
                                free_bytes: number;
                                /** @description Services of clusters */
                                services: number;
                                /** @description Primaries of clusters that are ready */
                                primaries: number;
                            }[];
                        };
                    };
                };
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            region: string;
                            /** @enum {unknown} */
                            state: "running" | "canceling" | "done" | "canceled";
                            moves: {
                                tenant_id: string;
                                from: string;
                                to: string;
                                /** @description The size of the home when the move was planned */
                                bytes: number;
                                /** @enum {unknown} */
                                state: "waiting" | "moving" | "moved" | "failed" | "skipped";
                                operation_id: string | null;
                                /** @description The reason for `failed` and `skipped` */
                                error: string | null;
                            }[];
                            service_moves: {
                                tenant_id: string;
                                service: string;
                                /** @description ID of the host in its region */
                                from: string;
                                /** @description ID of the host in its region */
                                to: string;
                                /** @description The memory that the service reserves */
                                memory_bytes: number;
                                /** @enum {unknown} */
                                state: "waiting" | "moving" | "moved" | "failed" | "skipped";
                                operation_id: string | null;
                                /** @description The reason for `failed` and `skipped` */
                                error: string | null;
                            }[];
                            switchovers: {
                                tenant_id: string;
                                /** @description The service of the primary */
                                from: string;
                                /** @description The service of the member that becomes the primary */
                                to: string;
                                /** @description ID of the host in its region */
                                from_host: string;
                                /** @description ID of the host in its region */
                                to_host: string;
                                /** @enum {unknown} */
                                state: "waiting" | "moving" | "moved" | "failed" | "skipped";
                                operation_id: string | null;
                                /** @description The reason for `failed` and `skipped` */
                                error: string | null;
                            }[];
                            /** @description ISO 8601, UTC */
                            created: string;
                            finished: string | null;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/regions/{id}/rebalances": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the rebalances of a region, newest first */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `next_cursor` of the previous page */
                    cursor?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            rebalances: {
                                id: string;
                                region: string;
                                /** @enum {unknown} */
                                state: "running" | "canceling" | "done" | "canceled";
                                moves: {
                                    tenant_id: string;
                                    from: string;
                                    to: string;
                                    /** @description The size of the home when the move was planned */
                                    bytes: number;
                                    /** @enum {unknown} */
                                    state: "waiting" | "moving" | "moved" | "failed" | "skipped";
                                    operation_id: string | null;
                                    /** @description The reason for `failed` and `skipped` */
                                    error: string | null;
                                }[];
                                service_moves: {
                                    tenant_id: string;
                                    service: string;
                                    /** @description ID of the host in its region */
                                    from: string;
                                    /** @description ID of the host in its region */
                                    to: string;
                                    /** @description The memory that the service reserves */
                                    memory_bytes: number;
                                    /** @enum {unknown} */
                                    state: "waiting" | "moving" | "moved" | "failed" | "skipped";
                                    operation_id: string | null;
                                    /** @description The reason for `failed` and `skipped` */
                                    error: string | null;
                                }[];
                                switchovers: {
                                    tenant_id: string;
                                    /** @description The service of the primary */
                                    from: string;
                                    /** @description The service of the member that becomes the primary */
                                    to: string;
                                    /** @description ID of the host in its region */
                                    from_host: string;
                                    /** @description ID of the host in its region */
                                    to_host: string;
                                    /** @enum {unknown} */
                                    state: "waiting" | "moving" | "moved" | "failed" | "skipped";
                                    operation_id: string | null;
                                    /** @description The reason for `failed` and `skipped` */
                                    error: string | null;
                                }[];
                                /** @description ISO 8601, UTC */
                                created: string;
                                finished: string | null;
                            }[];
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/regions/{id}/rebalances/{rebalance}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Return a rebalance with its moves */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    rebalance: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            region: string;
                            /** @enum {unknown} */
                            state: "running" | "canceling" | "done" | "canceled";
                            moves: {
                                tenant_id: string;
                                from: string;
                                to: string;
                                /** @description The size of the home when the move was planned */
                                bytes: number;
                                /** @enum {unknown} */
                                state: "waiting" | "moving" | "moved" | "failed" | "skipped";
                                operation_id: string | null;
                                /** @description The reason for `failed` and `skipped` */
                                error: string | null;
                            }[];
                            service_moves: {
                                tenant_id: string;
                                service: string;
                                /** @description ID of the host in its region */
                                from: string;
                                /** @description ID of the host in its region */
                                to: string;
                                /** @description The memory that the service reserves */
                                memory_bytes: number;
                                /** @enum {unknown} */
                                state: "waiting" | "moving" | "moved" | "failed" | "skipped";
                                operation_id: string | null;
                                /** @description The reason for `failed` and `skipped` */
                                error: string | null;
                            }[];
                            switchovers: {
                                tenant_id: string;
                                /** @description The service of the primary */
                                from: string;
                                /** @description The service of the member that becomes the primary */
                                to: string;
                                /** @description ID of the host in its region */
                                from_host: string;
                                /** @description ID of the host in its region */
                                to_host: string;
                                /** @enum {unknown} */
                                state: "waiting" | "moving" | "moved" | "failed" | "skipped";
                                operation_id: string | null;
                                /** @description The reason for `failed` and `skipped` */
                                error: string | null;
                            }[];
                            /** @description ISO 8601, UTC */
                            created: string;
                            finished: string | null;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/regions/{id}/rebalances/{rebalance}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a rebalance
         * @description No further move begins. Those in progress end, unless their operations are canceled too.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    rebalance: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            region: string;
                            /** @enum {unknown} */
                            state: "running" | "canceling" | "done" | "canceled";
                            moves: {
                                tenant_id: string;
                                from: string;
                                to: string;
                                /** @description The size of the home when the move was planned */
                                bytes: number;
                                /** @enum {unknown} */
                                state: "waiting" | "moving" | "moved" | "failed" | "skipped";
                                operation_id: string | null;
                                /** @description The reason for `failed` and `skipped` */
                                error: string | null;
                            }[];
                            service_moves: {
                                tenant_id: string;
                                service: string;
                                /** @description ID of the host in its region */
                                from: string;
                                /** @description ID of the host in its region */
                                to: string;
                                /** @description The memory that the service reserves */
                                memory_bytes: number;
                                /** @enum {unknown} */
                                state: "waiting" | "moving" | "moved" | "failed" | "skipped";
                                operation_id: string | null;
                                /** @description The reason for `failed` and `skipped` */
                                error: string | null;
                            }[];
                            switchovers: {
                                tenant_id: string;
                                /** @description The service of the primary */
                                from: string;
                                /** @description The service of the member that becomes the primary */
                                to: string;
                                /** @description ID of the host in its region */
                                from_host: string;
                                /** @description ID of the host in its region */
                                to_host: string;
                                /** @enum {unknown} */
                                state: "waiting" | "moving" | "moved" | "failed" | "skipped";
                                operation_id: string | null;
                                /** @description The reason for `failed` and `skipped` */
                                error: string | null;
                            }[];
                            /** @description ISO 8601, UTC */
                            created: string;
                            finished: string | null;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/backups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the backups of all tenants, oldest first
         * @description `state=missing`: complete backups whose files are in no backup target. `state=unknown`: backups in a target that the control database does not know. Both are in the order of their IDs.
         */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `next_cursor` of the previous page */
                    cursor?: string;
                    state?: "running" | "complete" | "failed" | "missing" | "unknown";
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            backups: ({
                                id: string;
                                /** @description The tenant may be deleted */
                                tenant_id: string;
                                region: string;
                                /** @description The isolation model of the tenant. A new tenant that the backup is restored into may have another one */
                                isolation: string;
                                /** @enum {unknown} */
                                state: "running" | "complete" | "failed";
                                /** @enum {unknown} */
                                trigger: "request" | "schedule";
                                planned_at: string | null;
                                bytes: number | null;
                                manifest_sha256: string | null;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                finished: string | null;
                                verified: string | null;
                                verify_error: string | null;
                                recovered_to: string | null;
                            } | {
                                id: string;
                                /** @enum {string} */
                                state: "unknown";
                                tenant_id: string | null;
                                tenant_name: string | null;
                                plan: string | null;
                                isolation: string | null;
                                region: string | null;
                                bytes: number | null;
                                manifest_sha256: string | null;
                                created: string | null;
                                finished: string | null;
                                adoptable: boolean;
                                /** @description Why the backup can't be adopted */
                                problem: {
                                    code: string;
                                    message: string;
                                } | null;
                            })[];
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/backups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List a tenant's backups, oldest first; also when the tenant is gone */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `next_cursor` of the previous page */
                    cursor?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            backups: {
                                id: string;
                                /** @description The tenant may be deleted */
                                tenant_id: string;
                                region: string;
                                /** @description The isolation model of the tenant. A new tenant that the backup is restored into may have another one */
                                isolation: string;
                                /** @enum {unknown} */
                                state: "running" | "complete" | "failed";
                                /** @enum {unknown} */
                                trigger: "request" | "schedule";
                                planned_at: string | null;
                                bytes: number | null;
                                manifest_sha256: string | null;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                finished: string | null;
                                verified: string | null;
                                verify_error: string | null;
                                recovered_to: string | null;
                            }[];
                            next_cursor: string | null;
                            /** @description The last backup that was restored into a scratch home and found equal. It may have been removed */
                            last_proven: {
                                backup_id: string;
                                at: string;
                            } | null;
                        };
                    };
                };
            };
        };
        put?: never;
        /**
         * Take a backup of a tenant that runs
         * @description Responds at once; with `Prefer: wait=N` when the backup is complete, or after N seconds.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            /** @description The tenant may be deleted */
                            tenant_id: string;
                            region: string;
                            /** @description The isolation model of the tenant. A new tenant that the backup is restored into may have another one */
                            isolation: string;
                            /** @enum {unknown} */
                            state: "running" | "complete" | "failed";
                            /** @enum {unknown} */
                            trigger: "request" | "schedule";
                            planned_at: string | null;
                            bytes: number | null;
                            manifest_sha256: string | null;
                            error: string | null;
                            /** @description ISO 8601, UTC */
                            created: string;
                            finished: string | null;
                            verified: string | null;
                            verify_error: string | null;
                            recovered_to: string | null;
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/backups/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One backup */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            /** @description The tenant may be deleted */
                            tenant_id: string;
                            region: string;
                            /** @description The isolation model of the tenant. A new tenant that the backup is restored into may have another one */
                            isolation: string;
                            /** @enum {unknown} */
                            state: "running" | "complete" | "failed";
                            /** @enum {unknown} */
                            trigger: "request" | "schedule";
                            planned_at: string | null;
                            bytes: number | null;
                            manifest_sha256: string | null;
                            error: string | null;
                            /** @description ISO 8601, UTC */
                            created: string;
                            finished: string | null;
                            verified: string | null;
                            verify_error: string | null;
                            recovered_to: string | null;
                            /** @description What each backup target has of it now. `unavailable`: the target does not respond */
                            copies: {
                                target: string;
                                /** @enum {unknown} */
                                state: "complete" | "missing" | "unavailable";
                            }[];
                        } | {
                            id: string;
                            /** @enum {string} */
                            state: "unknown";
                            tenant_id: string | null;
                            tenant_name: string | null;
                            plan: string | null;
                            isolation: string | null;
                            region: string | null;
                            bytes: number | null;
                            manifest_sha256: string | null;
                            created: string | null;
                            finished: string | null;
                            adoptable: boolean;
                            /** @description Why the backup can't be adopted */
                            problem: {
                                code: string;
                                message: string;
                            } | null;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Remove a backup for good, also an unknown one */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            /** @description The tenant may be deleted */
                            tenant_id: string;
                            region: string;
                            /** @description The isolation model of the tenant. A new tenant that the backup is restored into may have another one */
                            isolation: string;
                            /** @enum {unknown} */
                            state: "running" | "complete" | "failed";
                            /** @enum {unknown} */
                            trigger: "request" | "schedule";
                            planned_at: string | null;
                            bytes: number | null;
                            manifest_sha256: string | null;
                            error: string | null;
                            /** @description ISO 8601, UTC */
                            created: string;
                            finished: string | null;
                            verified: string | null;
                            verify_error: string | null;
                            recovered_to: string | null;
                        } | {
                            id: string;
                            /** @enum {string} */
                            state: "unknown";
                            tenant_id: string | null;
                            tenant_name: string | null;
                            plan: string | null;
                            isolation: string | null;
                            region: string | null;
                            bytes: number | null;
                            manifest_sha256: string | null;
                            created: string | null;
                            finished: string | null;
                            adoptable: boolean;
                            /** @description Why the backup can't be adopted */
                            problem: {
                                code: string;
                                message: string;
                            } | null;
                        };
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/backups/{id}/adopt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Adopt a backup that the control database does not know
         * @description Its record must be of this installation and sealed with its master key. A backup that was adopted before stays as it is.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            /** @description The tenant may be deleted */
                            tenant_id: string;
                            region: string;
                            /** @description The isolation model of the tenant. A new tenant that the backup is restored into may have another one */
                            isolation: string;
                            /** @enum {unknown} */
                            state: "running" | "complete" | "failed";
                            /** @enum {unknown} */
                            trigger: "request" | "schedule";
                            planned_at: string | null;
                            bytes: number | null;
                            manifest_sha256: string | null;
                            error: string | null;
                            /** @description ISO 8601, UTC */
                            created: string;
                            finished: string | null;
                            verified: string | null;
                            verify_error: string | null;
                            recovered_to: string | null;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/backups/{id}/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore a backup into a scratch home and compare
         * @description Responds at once; with `Prefer: wait=N` when it is done, or after N seconds. The operation and the backup have the differences that were found.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            /** @description The tenant may be deleted */
                            tenant_id: string;
                            region: string;
                            /** @description The isolation model of the tenant. A new tenant that the backup is restored into may have another one */
                            isolation: string;
                            /** @enum {unknown} */
                            state: "running" | "complete" | "failed";
                            /** @enum {unknown} */
                            trigger: "request" | "schedule";
                            planned_at: string | null;
                            bytes: number | null;
                            manifest_sha256: string | null;
                            error: string | null;
                            /** @description ISO 8601, UTC */
                            created: string;
                            finished: string | null;
                            verified: string | null;
                            verify_error: string | null;
                            recovered_to: string | null;
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/backups/{id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore a backup
         * @description Into the backup's own tenant, whose data is replaced when the restored copy is complete and compared; or into a new tenant, whose keys and database password are returned only here.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        /** @description `same`: the restored data replaces the tenant's. Or a new tenant to restore into */
                        into: "same" | {
                            /** @description DNS label of 3 to 63 characters */
                            name: string;
                            /** @description By default the plan of the backup's tenant */
                            plan?: string;
                            /**
                             * @description The isolation model of the new tenant. By default that of the backup's tenant
                             * @enum {unknown}
                             */
                            isolation?: "schema-per-tenant" | "database-per-tenant" | "cluster-per-tenant";
                        };
                    };
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            plan: string;
                            region: string;
                            isolation: string;
                            /** @description Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data */
                            isolation_mismatch: {
                                /** @enum {unknown} */
                                code: "WEAKER_THAN_PLAN" | "STRONGER_THAN_PLAN";
                                plan_isolation: string;
                                message: string;
                            } | null;
                            /** @enum {unknown} */
                            status: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                            reason: string | null;
                            /** @description The tenant's own URL, by host name */
                            url: string;
                            /** @description The tenant's URL by path, for clients that cannot resolve the host name */
                            path_url: string;
                            /** @description Without its password, except in the response that creates or rotates it */
                            database_url: string;
                            read_only_database_url: string | null;
                            generation: number;
                            observed_generation: number;
                            conditions: {
                                type: string;
                                status: string;
                                reason: string;
                                message: string;
                                /** @description ISO 8601, UTC */
                                observed_at: string;
                            }[];
                            suspend_reason: string | null;
                            /** @description Whether paying ends the suspension */
                            payment_required: boolean;
                            /** @enum {unknown} */
                            drift_policy: "repair" | "report" | "ignore";
                            /** @description Sizes of its own services: those set for it, or the plan's */
                            resources: {
                                postgres: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                                runtime: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                            } | null;
                            runtime_image: string | null;
                            pause_after_seconds: number | null;
                            backup_schedule: string | null;
                            backups_kept: number;
                            archive_days: number | null;
                            /** @description Rate of requests at each gateway: its plan's, or one of its own; null is unlimited */
                            rate_limit: {
                                per_second: number | null;
                                burst: number | null;
                                /** @enum {unknown} */
                                source: "plan" | "tenant";
                            };
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            updated_at: string;
                            purge_after: string | null;
                            keys: {
                                publishable_key: string;
                                secret_key: string;
                                jwt_secret: string;
                            };
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        } | {
                            id: string;
                            /** @description The tenant may be deleted */
                            tenant_id: string;
                            region: string;
                            /** @description The isolation model of the tenant. A new tenant that the backup is restored into may have another one */
                            isolation: string;
                            /** @enum {unknown} */
                            state: "running" | "complete" | "failed";
                            /** @enum {unknown} */
                            trigger: "request" | "schedule";
                            planned_at: string | null;
                            bytes: number | null;
                            manifest_sha256: string | null;
                            error: string | null;
                            /** @description ISO 8601, UTC */
                            created: string;
                            finished: string | null;
                            verified: string | null;
                            verify_error: string | null;
                            recovered_to: string | null;
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/recovery": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read which moments a tenant can be restored to */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** @description null: no archive */
                            archive_days: number | null;
                            earliest: string | null;
                            latest: string | null;
                            /** @description The periods in which each moment can be recovered. There are several after a gap */
                            ranges: {
                                from: string;
                                to: string;
                            }[];
                            lag_seconds: number | null;
                            /** @description Stored size of base backups and WAL: compressed and encrypted */
                            bytes: number;
                            last_base: string | null;
                            error: string | null;
                            /** @description The last restore to a point in time whose result was compared */
                            last_proven: {
                                to: string;
                                at: string;
                            } | null;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tenants/{id}/restore": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Restore a tenant to a point in time
         * @description Makes a backup of the tenant as it was at that moment from its archive, and restores it: into the tenant itself, whose data is replaced when the restored copy is complete and compared; or into a new tenant, whose keys and database password are returned only here.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        /** @description ISO 8601 with a time zone, to the millisecond */
                        to: string;
                        /** @description `same`: the restored data replaces the tenant's. Or a new tenant to restore into */
                        into: "same" | {
                            /** @description DNS label of 3 to 63 characters */
                            name: string;
                            /** @description By default the plan of the backup's tenant */
                            plan?: string;
                            /**
                             * @description The isolation model of the new tenant. By default that of the backup's tenant
                             * @enum {unknown}
                             */
                            isolation?: "schema-per-tenant" | "database-per-tenant" | "cluster-per-tenant";
                        };
                    };
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            tenant_id: string;
                            name: string;
                            plan: string;
                            region: string;
                            isolation: string;
                            /** @description Set if the isolation differs from the plan's in the tenant's region, because a change of plan moves no data */
                            isolation_mismatch: {
                                /** @enum {unknown} */
                                code: "WEAKER_THAN_PLAN" | "STRONGER_THAN_PLAN";
                                plan_isolation: string;
                                message: string;
                            } | null;
                            /** @enum {unknown} */
                            status: "pending" | "ready" | "suspended" | "paused" | "deleting" | "failed";
                            reason: string | null;
                            /** @description The tenant's own URL, by host name */
                            url: string;
                            /** @description The tenant's URL by path, for clients that cannot resolve the host name */
                            path_url: string;
                            /** @description Without its password, except in the response that creates or rotates it */
                            database_url: string;
                            read_only_database_url: string | null;
                            generation: number;
                            observed_generation: number;
                            conditions: {
                                type: string;
                                status: string;
                                reason: string;
                                message: string;
                                /** @description ISO 8601, UTC */
                                observed_at: string;
                            }[];
                            suspend_reason: string | null;
                            /** @description Whether paying ends the suspension */
                            payment_required: boolean;
                            /** @enum {unknown} */
                            drift_policy: "repair" | "report" | "ignore";
                            /** @description Sizes of its own services: those set for it, or the plan's */
                            resources: {
                                postgres: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                                runtime: {
                                    memory_bytes: number;
                                    /** @description Thousandths of a core */
                                    cpu_millis: number;
                                };
                            } | null;
                            runtime_image: string | null;
                            pause_after_seconds: number | null;
                            backup_schedule: string | null;
                            backups_kept: number;
                            archive_days: number | null;
                            /** @description Rate of requests at each gateway: its plan's, or one of its own; null is unlimited */
                            rate_limit: {
                                per_second: number | null;
                                burst: number | null;
                                /** @enum {unknown} */
                                source: "plan" | "tenant";
                            };
                            /** @description ISO 8601, UTC */
                            created_at: string;
                            /** @description ISO 8601, UTC */
                            updated_at: string;
                            purge_after: string | null;
                            keys: {
                                publishable_key: string;
                                secret_key: string;
                                jwt_secret: string;
                            };
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        } | {
                            id: string;
                            /** @description The tenant may be deleted */
                            tenant_id: string;
                            region: string;
                            /** @description The isolation model of the tenant. A new tenant that the backup is restored into may have another one */
                            isolation: string;
                            /** @enum {unknown} */
                            state: "running" | "complete" | "failed";
                            /** @enum {unknown} */
                            trigger: "request" | "schedule";
                            planned_at: string | null;
                            bytes: number | null;
                            manifest_sha256: string | null;
                            error: string | null;
                            /** @description ISO 8601, UTC */
                            created: string;
                            finished: string | null;
                            verified: string | null;
                            verify_error: string | null;
                            recovered_to: string | null;
                            operation: {
                                id: string;
                                tenant_id: string;
                                /** @enum {unknown} */
                                kind: "create" | "update" | "delete" | "undelete" | "rotate_keys" | "rotate_database_password" | "rotate_service_passwords" | "suspend" | "resume" | "pause" | "wake" | "restart" | "resize" | "upgrade" | "switchover" | "move" | "move_service" | "repair" | "backup" | "restore" | "verify";
                                /** @enum {unknown} */
                                state: "pending" | "running" | "succeeded" | "failed" | "superseded";
                                step: string | null;
                                attempts: number;
                                error: string | null;
                                /** @description ISO 8601, UTC */
                                created: string;
                                started: string | null;
                                finished: string | null;
                                /** @description The progress of an operation of the kind `move` */
                                move?: {
                                    /** @description The database that the home leaves */
                                    from: string;
                                    to: string;
                                    from_region: string | null;
                                    to_region: string | null;
                                    from_isolation: string | null;
                                    to_isolation: string | null;
                                    /** @description Rows that are copied, with those of changes */
                                    rows: number;
                                    /** @description Bytes of the rows as COPY writes them */
                                    bytes: number;
                                    /** @description Bytes of the write-ahead log that are still to be read */
                                    pending_bytes: number | null;
                                    waits_for: string | null;
                                    reverts: string | null;
                                    revertible_until: string | null;
                                    not_revertible_reason: string | null;
                                };
                            };
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List platform keys */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            keys: {
                                id: string;
                                name: string;
                                prefix: string;
                                /** @enum {unknown} */
                                scope: "admin" | "read" | "billing";
                                /** @description The only tenant that the key may use */
                                tenant_id: string | null;
                                /** @description The only region that the key may use */
                                region: string | null;
                                /** @description Addresses and networks of its callers; empty: all */
                                addresses: string[];
                                created_at: string;
                                expires_at: string | null;
                                revoked_at: string | null;
                                replaced_by: string | null;
                            }[];
                        };
                    };
                };
            };
        };
        put?: never;
        /**
         * Create a platform key
         * @description What the request leaves out is as in the key of the request, which the new key may not exceed. A key is limited to a tenant or a region, not to both.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        name: string;
                        /** @enum {unknown} */
                        scope: "admin" | "read" | "billing";
                        tenant_id?: string;
                        region?: string;
                        /** @description IPv4 and IPv6 addresses and networks from which the key may be used */
                        addresses?: string[];
                        expires_in_seconds?: number;
                    };
                };
            };
            responses: {
                /** @description Default Response */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            name: string;
                            prefix: string;
                            /** @enum {unknown} */
                            scope: "admin" | "read" | "billing";
                            /** @description The only tenant that the key may use */
                            tenant_id: string | null;
                            /** @description The only region that the key may use */
                            region: string | null;
                            /** @description Addresses and networks of its callers; empty: all */
                            addresses: string[];
                            created_at: string;
                            expires_at: string | null;
                            revoked_at: string | null;
                            replaced_by: string | null;
                            /** @description Returned only here */
                            key: string;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke a platform key at once */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            name: string;
                            prefix: string;
                            /** @enum {unknown} */
                            scope: "admin" | "read" | "billing";
                            /** @description The only tenant that the key may use */
                            tenant_id: string | null;
                            /** @description The only region that the key may use */
                            region: string | null;
                            /** @description Addresses and networks of its callers; empty: all */
                            addresses: string[];
                            created_at: string;
                            expires_at: string | null;
                            revoked_at: string | null;
                            replaced_by: string | null;
                        };
                    };
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/keys/{id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replace a platform key
         * @description The new key has the same name, scope, limits and end. The old one stays valid for another `overlap_seconds` (default 86400), or until its own end.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        overlap_seconds?: number;
                    };
                };
            };
            responses: {
                /** @description Default Response */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            name: string;
                            prefix: string;
                            /** @enum {unknown} */
                            scope: "admin" | "read" | "billing";
                            /** @description The only tenant that the key may use */
                            tenant_id: string | null;
                            /** @description The only region that the key may use */
                            region: string | null;
                            /** @description Addresses and networks of its callers; empty: all */
                            addresses: string[];
                            created_at: string;
                            expires_at: string | null;
                            revoked_at: string | null;
                            replaced_by: string | null;
                            /** @description Returned only here */
                            key: string;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List webhooks, oldest first */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            webhooks: {
                                id: string;
                                url: string;
                                description: string;
                                types: string[];
                                enabled: boolean;
                                /** @description `gone`: the endpoint responded with 410 */
                                disabled_reason: ("operator" | "gone") | null;
                                created_at: string;
                            }[];
                        };
                    };
                };
            };
        };
        put?: never;
        /** Register a webhook */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        /** @description http or https, without user or fragment */
                        url: string;
                        description?: string;
                        /** @description Types of events to send; all when empty */
                        types?: ("tenant.ready" | "tenant.failed" | "tenant.suspended" | "tenant.undeleted" | "tenant.repaired" | "tenant.sql_limited" | "backup.failed" | "backup.proof_failed" | "backup.restore_failed" | "archive.failed" | "rollout.failed" | "region.not_ready" | "region.ready" | "quota.warning" | "quota.reached" | "spending.warning" | "spending.reached" | "invoice.final")[];
                    };
                };
            };
            responses: {
                /** @description Default Response */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            url: string;
                            description: string;
                            types: string[];
                            enabled: boolean;
                            /** @description `gone`: the endpoint responded with 410 */
                            disabled_reason: ("operator" | "gone") | null;
                            created_at: string;
                            /** @description Returned only here */
                            secret: string;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One webhook */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            url: string;
                            description: string;
                            types: string[];
                            enabled: boolean;
                            /** @description `gone`: the endpoint responded with 410 */
                            disabled_reason: ("operator" | "gone") | null;
                            created_at: string;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Remove a webhook with its pending messages */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        /** Change a webhook, or disable and enable it */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        /** @description http or https, without user or fragment */
                        url?: string;
                        description?: string;
                        /** @description Types of events to send; all when empty */
                        types?: ("tenant.ready" | "tenant.failed" | "tenant.suspended" | "tenant.undeleted" | "tenant.repaired" | "tenant.sql_limited" | "backup.failed" | "backup.proof_failed" | "backup.restore_failed" | "archive.failed" | "rollout.failed" | "region.not_ready" | "region.ready" | "quota.warning" | "quota.reached" | "spending.warning" | "spending.reached" | "invoice.final")[];
                        enabled?: boolean;
                    };
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            url: string;
                            description: string;
                            types: string[];
                            enabled: boolean;
                            /** @description `gone`: the endpoint responded with 410 */
                            disabled_reason: ("operator" | "gone") | null;
                            created_at: string;
                        };
                    };
                };
            };
        };
        trace?: never;
    };
    "/v1/webhooks/{id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replace a webhook's secret
         * @description Messages are also signed with the former secret for another `overlap_seconds` (default 86400).
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        overlap_seconds?: number;
                    };
                };
            };
            responses: {
                /** @description Default Response */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            url: string;
                            description: string;
                            types: string[];
                            enabled: boolean;
                            /** @description `gone`: the endpoint responded with 410 */
                            disabled_reason: ("operator" | "gone") | null;
                            created_at: string;
                            /** @description Returned only here */
                            secret: string;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Messages to a webhook, oldest first; `state=dead` lists those that were given up */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `next_cursor` of the previous page */
                    cursor?: string;
                    state?: "pending" | "delivered" | "dead";
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            deliveries: {
                                id: string;
                                /** @description `webhook-id` of the message */
                                event_id: string;
                                type: string;
                                event_at: string;
                                data: unknown;
                                /** @enum {unknown} */
                                state: "pending" | "delivered" | "dead";
                                attempts: number;
                                next_attempt_at: string | null;
                                last_attempt_at: string | null;
                                last_status: number | null;
                                last_error: string | null;
                                created_at: string;
                            }[];
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send all messages that were given up again */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            replayed: number;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/webhooks/{id}/deliveries/{delivery}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send one message again */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    delivery: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": Record<string, unknown> | null;
                };
            };
            responses: {
                /** @description Default Response */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            id: string;
                            /** @description `webhook-id` of the message */
                            event_id: string;
                            type: string;
                            event_at: string;
                            data: unknown;
                            /** @enum {unknown} */
                            state: "pending" | "delivered" | "dead";
                            attempts: number;
                            next_attempt_at: string | null;
                            last_attempt_at: string | null;
                            last_status: number | null;
                            last_error: string | null;
                            created_at: string;
                        };
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/blocked-addresses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List blocked addresses, oldest first */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `next_cursor` of the previous page */
                    cursor?: string;
                    /** @description Address that all listed entries contain */
                    containing?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            blocked_addresses: {
                                /** @description In canonical form, without the bits behind the prefix */
                                address: string;
                                reason: string;
                                created_at: string;
                                /** @description null: until it is removed */
                                expires_at: string | null;
                            }[];
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/blocked-addresses/{address}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** One blocked address */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description IPv4 or IPv6 address, or a network with `%2F` before its length, such as 203.0.113.0%2F24 */
                    address: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** @description In canonical form, without the bits behind the prefix */
                            address: string;
                            reason: string;
                            created_at: string;
                            /** @description null: until it is removed */
                            expires_at: string | null;
                        };
                    };
                };
            };
        };
        /**
         * Block an address or network
         * @description Replaces the entry of the same address or network. Repeated requests have the same effect.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description IPv4 or IPv6 address, or a network with `%2F` before its length, such as 203.0.113.0%2F24 */
                    address: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": {
                        reason: string;
                        /** @description Without it, the entry has no end */
                        expires_in_seconds?: number;
                        /** @description true is necessary for loopback addresses and very large networks */
                        confirmed?: boolean;
                    };
                };
            };
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            /** @description In canonical form, without the bits behind the prefix */
                            address: string;
                            reason: string;
                            created_at: string;
                            /** @description null: until it is removed */
                            expires_at: string | null;
                        };
                    };
                };
            };
        };
        post?: never;
        /**
         * Unblock an address or network
         * @description Other entries that contain it remain.
         */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description IPv4 or IPv6 address, or a network with `%2F` before its length, such as 203.0.113.0%2F24 */
                    address: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/certificate-authority.pem": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The certificate with which SQL clients verify a gateway
         * @description PEM, for `sslrootcert` of psql, or `ssl.ca` of node-postgres. It changes only if the operator replaces the authority.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/x-pem-file": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The audit log, newest first */
        get: {
            parameters: {
                query?: {
                    /** @description 1 to 1000, default 100 */
                    limit?: string;
                    /** @description `seq` of the last entry of the page before */
                    before?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            entries: {
                                seq: number;
                                at: string;
                                actor: string;
                                action: string;
                                target: string;
                                detail: unknown;
                            }[];
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/audit/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Recompute the chain of hashes */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Default Response */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": {
                            whole: boolean;
                            entries: number;
                            broken_at: number | null;
                        };
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: never;
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
