/** Greets people by name, remembers whom, and greets each user who logs in. */
import { definePlugin, errors, joi, reply } from '@portico/sdk';
import { defineEntity, p } from '@portico/sdk/db';

const Greeting = defineEntity({
    name: 'Greeting',
    tableName: 'hello_greetings',
    properties: { id: p.integer().primary(), name: p.string(), text: p.string() }
});

const greeting = joi.object({
    id: joi.number().required(),
    name: joi.string().required(),
    text: joi.string().required()
});

export default definePlugin({
    settings: joi.object({
        greeting: joi
            .string()
            .max(80)
            .default('Hello')
            .label('Greeting')
            .description('What stands before the name')
    }),
    entities: [Greeting],
    migrations: [
        {
            name: '0001-greetings',
            up: [
                'create table hello_greetings (id integer primary key autoincrement, name text not null, text text not null)'
            ]
        }
    ],
    setup(ctx) {
        const greet = (name: string) =>
            ctx.db.write(async (em) =>
                em.create(Greeting, { name, text: `${ctx.settings.greeting}, ${name}` })
            );

        ctx.route({
            method: 'POST',
            path: '/greetings',
            access: 'write',
            summary: 'Greet a person',
            validate: { payload: joi.object({ name: joi.string().max(40).required().label('Name') }) },
            returns: greeting,
            async handler({ payload }) {
                const made = await greet(payload.name);
                return reply.created(`/api/plugins/hello/greetings/${made.id}`, made);
            }
        });
        ctx.route({
            method: 'GET',
            path: '/greetings',
            access: 'read',
            summary: 'List the greetings, newest first',
            returns: joi.array().items(greeting),
            async handler() {
                const [rows, total] = await ctx.db.read((em) =>
                    em.findAndCount(Greeting, {}, { orderBy: { id: 'desc' }, limit: 100 })
                );
                return reply.list(rows, { total });
            }
        });
        ctx.route({
            method: 'GET',
            path: '/greetings/{id}',
            access: 'read',
            summary: 'Show one greeting',
            validate: { params: joi.object({ id: joi.number().integer().required().label('Number') }) },
            returns: greeting,
            async handler({ params }) {
                const found = await ctx.db.read((em) => em.findOne(Greeting, params.id));
                if (found === null) {
                    throw errors.notFound(`There is no greeting ${params.id}`);
                }
                return found;
            }
        });

        ctx.hooks.tap('auth.afterLogin', async ({ username }) => {
            await greet(username);
        });
    }
});
