import { invalidate } from '../../api/queries.ts';
import { t } from '../../words/t.ts';
import { toast, toastFailure } from './toast.tsx';

/** Does a thing, tells what came of it, and reads again what lies below a path. @param title - the thing in words */
export async function carryOut(title: string, path: string, work: () => Promise<unknown>): Promise<void> {
    await work().then(() => toast(t('Done: {what}', { what: title })), toastFailure);
    await invalidate(path);
}
