/** A stream of a generated page. */
import { address } from '../api/client.ts';
import { Log } from '../kit/log.tsx';
import type { Operation, Params } from './operations.ts';
import { pathOf } from './run.ts';

/** Follows a stream while it is shown. */
export function Live({
    operation,
    params = {}
}: {
    readonly operation: Operation;
    readonly params?: Params;
}) {
    const canFollow = operation.query.some(({ name }) => name === 'follow');
    const path = address(pathOf(operation, params), canFollow ? { follow: true } : {});
    return (
        <section class="card">
            <h2>{operation.title}</h2>
            <Log path={path} title={operation.title} />
        </section>
    );
}
