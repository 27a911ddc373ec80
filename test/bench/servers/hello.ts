/** The program that the panel's start is compared with: hapi, joi and MikroORM with twenty entities and a hundred routes. */
import { enableCompileCache, flushCompileCache } from 'node:module';
import type { AddressInfo } from 'node:net';

import { asChild } from './child.ts';

enableCompileCache();

asChild(async () => {
    const [{ server: createHapi }, joi, { defineEntity, p }, { MikroORM }] = await Promise.all([
        import('@hapi/hapi'),
        import('joi'),
        import('@mikro-orm/core'),
        import('@mikro-orm/sqlite')
    ]);
    const entities = Array.from({ length: 20 }, (_, n) =>
        defineEntity({
            name: `Thing${n}`,
            tableName: `thing${n}`,
            properties: {
                id: p.integer().primary(),
                name: p.string(),
                note: p.text().nullable(),
                version: p.integer(),
                createdAt: p.datetime()
            }
        })
    );
    const orm = await MikroORM.init({ dbName: ':memory:', entities });
    await orm.em.fork().execute('select 1');
    const hapi = createHapi({ host: '127.0.0.1', port: 0 });
    for (let n = 0; n < 100; n += 1) {
        hapi.route({
            method: 'GET',
            path: `/things${n}/{id}`,
            options: {
                validate: { params: joi.default.object({ id: joi.default.number().integer().required() }) }
            },
            handler: () => ({ n })
        });
    }
    await hapi.start();
    setImmediate(() => flushCompileCache());
    return (hapi.listener.address() as AddressInfo).port;
});
