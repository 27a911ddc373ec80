/** What stands over the page when the panel has ended the session: the same user logs in again and goes on where the page is. */
import { queries } from '../../api/queries.ts';
import type { Me } from '../../api/session/login.ts';
import { Dialog } from '../../kit/dialogs/dialog.tsx';
import { Store, useStore } from '../../kit/store.ts';
import { t } from '../../words/t.ts';
import { LoginForm } from './login-form.tsx';

interface Question {
    readonly username: string;
    readonly answer: (isIn: boolean) => void;
}

const question = new Store<Question | null>(null);

/** Asks the user to log in again. It resolves with false where no user is known yet: then there is nothing to lose, and the login is shown. */
export function askToLogIn(): Promise<boolean> {
    const me = queries.getQueryData<Me>(['read', '/api/auth/me']);
    return me === undefined
        ? Promise.resolve(false)
        : new Promise((resolve) => {
              question.set({
                  username: me.username,
                  answer(isIn) {
                      question.set(null);
                      resolve(isIn);
                  }
              });
          });
}

/** The place where it is asked. */
export function SessionEnd() {
    const asked = useStore(question);
    return asked === null ? null : (
        <Dialog title={t('Your session has ended')} isCurtain onClose={() => asked.answer(false)}>
            <p>
                {t('Log in again as {name}, and go on where you were: what you typed is still there.', {
                    name: asked.username
                })}
            </p>
            <LoginForm again={asked.username} onDone={() => asked.answer(true)} />
        </Dialog>
    );
}
