/** What the compiler must infer and refuse. Run by the type check alone. */
import {
    type Actor,
    type Call,
    type Context,
    contract,
    type ContractOf,
    definePlugin,
    joi,
    type Notify,
    reply,
    type Value
} from '@portico/sdk';
import { defineEntity, p } from '@portico/sdk/db';

declare module '@portico/sdk' {
    interface Hooks {
        'types.happened': Notify<{ readonly id: number }>;
    }
}

const settings = joi.object({
    greeting: joi.string().max(80).default('Hello'),
    token: joi.secret().required(),
    nested: joi.object({ n: joi.number().required() })
});

export const hello = definePlugin({
    settings,
    setup(ctx) {
        const greeting: string = ctx.settings.greeting;
        // @ts-expect-error -- no such setting
        void ctx.settings.greting;
        // @ts-expect-error -- settings are read-only
        ctx.settings.greeting = greeting;
        ctx.route({
            method: 'GET',
            path: '/{name}',
            access: 'read',
            validate: {
                params: joi.object({ name: joi.string().required() }),
                query: joi.object({ limit: joi.number() })
            },
            handler({ params, query, payload }) {
                // @ts-expect-error -- no such parameter
                void params.nam;
                // @ts-expect-error -- no payload without a schema
                void payload.x;
                // @ts-expect-error -- may be absent
                const limit: number = query.limit;
                const name: string = params.name;
                return { name, limit };
            }
        });
        // @ts-expect-error -- access is required
        ctx.route({ method: 'GET', path: '/', handler: () => 1 });
        ctx.route({
            method: 'GET',
            path: '/ok',
            access: 'read',
            returns: joi.object({ n: joi.number().required() }),
            handler: async () => ({ n: 1 })
        });
        ctx.route({
            method: 'GET',
            path: '/bad',
            access: 'read',
            returns: joi.object({ n: joi.number().required() }),
            // @ts-expect-error -- the answer does not fit `returns`
            handler: async () => ({ n: 'x' })
        });
        ctx.route({
            method: 'POST',
            path: '/made',
            access: 'write',
            returns: joi.object({ n: joi.number().required() }),
            handler: () => reply.created('/x', { n: 1 })
        });
        ctx.route({
            method: 'POST',
            path: '/made',
            access: 'write',
            returns: joi.object({ n: joi.number().required() }),
            // @ts-expect-error -- the data of a reply does not fit `returns` either
            handler: () => reply.created('/x', { n: 'x' })
        });
        ctx.route({
            method: 'GET',
            path: '/door',
            access: { public: 'every caller may see this' },
            handler: () => null
        });
        ctx.socket({
            path: '/s/{ticket}',
            access: { ticket: 'ticket', permission: 'use' },
            validate: { params: joi.object({ ticket: joi.string().required() }) },
            handler: async (socket, { ticket, params }) => {
                const id: string = params.ticket;
                for await (const message of socket) {
                    await socket.send(message);
                }
                void ticket;
                void id;
            }
        });
        ctx.stream({
            path: '/ticks',
            access: 'read',
            async *handler({ lastEventId, signal }) {
                const last: string | null = lastEventId;
                if (!signal.aborted) {
                    yield { data: { last } };
                }
            }
        });
        ctx.stream({
            path: '/none',
            access: 'read',
            // @ts-expect-error -- an event has data
            async *handler() {
                yield { id: '1' };
            }
        });
        ctx.stream({
            path: '/told',
            access: 'read',
            events: { output: joi.object({ text: joi.string().required() }), message: joi.number() },
            ui: { role: 'log' },
            async *handler() {
                yield { event: 'output', data: { text: 'x' } };
                yield { data: 7 };
            }
        });
        ctx.stream({
            path: '/other',
            access: 'read',
            events: { output: joi.object({ text: joi.string().required() }) },
            // @ts-expect-error -- the event is not declared
            async *handler() {
                yield { event: 'end', data: { text: 'x' } };
            }
        });
        ctx.route({
            method: 'POST',
            path: '/kept',
            access: 'write',
            answers: 'task',
            ui: { title: 'Keep', confirm: 'Keep it?' },
            validate: {
                payload: joi.object({
                    how: joi.choice({ skip: 'Skip it', queue: 'Wait' }).required(),
                    at: joi.readOnly(joi.string())
                })
            },
            async handler({ payload }) {
                const how: 'skip' | 'queue' = payload.how;
                const at: string | undefined = payload.at;
                return [how, at];
            }
        });
        ctx.route({
            method: 'GET',
            path: '/odd',
            access: 'read',
            // @ts-expect-error -- no such role
            ui: { role: 'table' },
            handler: () => null
        });
        ctx.upload({
            method: 'PUT',
            path: '/u',
            access: 'write',
            accepts: ['*/*'],
            maxBytes: 1,
            handler: async ({ body }) => {
                let bytes = 0;
                for await (const chunk of body) {
                    bytes += chunk.length;
                }
                return { bytes };
            }
        });
        ctx.http({
            methods: ['PATCH'],
            path: '/raw',
            access: 'write',
            raw: 'a protocol of its own',
            maxBytes: 10,
            handler: async (request, { actor }) => new Response(`${actor.key} ${request.method}`)
        });
        const happened = ctx.hooks.define('types.happened', { kind: 'notify', summary: 'It happened' });
        // @ts-expect-error -- the kind is that of the declaration
        ctx.hooks.define('types.happened', { kind: 'guard', summary: 'It happened' });
        void happened({ id: 1 });
        // @ts-expect-error -- the payload is that of the declaration
        void happened({ id: 'x' });
        ctx.hooks.tap('host.afterChange', ({ action, host }) => {
            const domain: string = host.domain;
            // @ts-expect-error -- no such action
            void (action === 'created' && domain === '');
        });
        ctx.hooks.tap('host.guard', ({ action }) => (action === 'delete' ? { refuse: 'no' } : undefined));
        // @ts-expect-error -- a guard answers with a refusal or nothing
        ctx.hooks.tap('host.guard', () => 1);
        // @ts-expect-error -- no such hook
        ctx.hooks.tap('host.garden', () => undefined);
        ctx.onSettings((now, before) => {
            const n: number | undefined = now.nested?.n;
            void n;
            void before.greeting;
        });
        ctx.health('self', () => ({ state: 'ok' }));
        // @ts-expect-error -- no such state
        ctx.health('self', () => ({ state: 'fine' }));
    }
});

export interface MathContract {
    add(input: { a: number; b: number }, call: Call): Promise<{ sum: number; actor: string | null }>;
    count(input: { to: number }, call: Call): AsyncIterable<{ n: number }>;
}

const notes = defineEntity({
    name: 'Note',
    tableName: 'types_notes',
    properties: { id: p.integer().primary(), text: p.string() }
});

export const consumer = definePlugin({
    requires: { math: contract<MathContract>() },
    optional: { maybe: contract<MathContract>() },
    entities: [notes],
    migrations: [
        { name: '1', up: ['create table types_notes (id integer primary key, text text not null)'] }
    ],
    setup(ctx) {
        ctx.onPartner('maybe', (maybe) => void maybe?.add({ a: 1, b: 2 }));
        ctx.route({
            method: 'GET',
            path: '/sum',
            access: 'read',
            async handler({ actor }) {
                const { sum } = await ctx.plugins.math.add({ a: 1, b: 2 }, { actor });
                const all: number = sum;
                // @ts-expect-error -- the input is that of the contract
                await ctx.plugins.math.add({ a: 'x', b: 2 });
                // @ts-expect-error -- an optional partner may be absent
                await ctx.plugins.maybe.add({ a: 1, b: 2 });
                for await (const { n } of ctx.plugins.math.count({ to: all })) {
                    void n;
                }
                const rows = await ctx.db.read((em) => em.find(notes, { text: 'x' }));
                // @ts-expect-error -- a row has no such column
                void rows[0]?.txt;
                return rows.map(({ text }) => text);
            }
        });
    }
});

export const provider = definePlugin({
    setup: () => ({
        ping: async (input: { n: number }) => input.n,
        async *ticks(_input: { n: number }, call: Call) {
            yield { for: call.plugin };
        }
    })
});
declare const partner: {
    readonly [K in keyof ContractOf<typeof provider>]: ContractOf<typeof provider>[K];
};
export const answer: Promise<number> = partner.ping({ n: 1 });
// @ts-expect-error -- a contract answers later
definePlugin({ setup: () => ({ ping: (input: { n: number }) => input.n }) });
// @ts-expect-error -- a callback is not plain
definePlugin({ setup: () => ({ watch: async (_input: { on: (x: number) => void }) => undefined }) });
definePlugin({
    setup: () => ({
        // @ts-expect-error -- a live object is not plain
        open: async (_input: { n: number }) => ({
            close() {
                /* nothing */
            }
        })
    })
});

/** A context is handed to functions by its type. */
export function greet(ctx: Context<Value<typeof settings>>, actor: Actor): string {
    return `${ctx.settings.greeting}, ${actor.username ?? 'nobody'}`;
}
