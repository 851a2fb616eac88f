# git sessions.
#| needs: git
#| ignore: files
export GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=ann@example.com GIT_COMMITTER_NAME=Ann GIT_COMMITTER_EMAIL=ann@example.com GIT_AUTHOR_DATE='2024-01-01T00:00:00+0000' GIT_COMMITTER_DATE='2024-01-01T00:00:00+0000' GIT_CONFIG_NOSYSTEM=1
repo() { git init -q -b main r && cd r && printf 'one\ntwo\nthree\n' > a.txt && mkdir src && printf 'print("hi")\n' > src/m.py && git add . && git commit -qm 'first'; }

#: init, add, commit, status, log
#| ignore: files stderr
git init r; cd r; git status; echo x > f; git status; git status -s; git add f; git status --porcelain; git diff --cached; git commit -m 'add f'; git status; git log; git log --oneline; git show; git rev-parse HEAD; git ls-files -s; git cat-file -p HEAD; git cat-file -t HEAD^{tree}; git count-objects; git branch; git config --list --local

#: diff in its forms
#| needs: sed
repo; sed -i 's/two/2/' a.txt; echo four >> a.txt; git diff; git diff --stat; git diff --numstat; git diff --name-only; git diff --word-diff; git diff -U0; git diff --color | cat -v; git add a.txt; git diff; git diff --cached --shortstat; git commit -qm second; git diff HEAD~1 HEAD -- a.txt; git diff HEAD~1 --name-status; git show --stat HEAD; git show HEAD:a.txt; git diff --no-index a.txt src/m.py; echo $?; git diff --exit-code HEAD~1 > /dev/null; echo $?; git diff --check; printf 'trail \n' >> a.txt; git diff --check; echo $?; git diff --summary; git diff HEAD~1..HEAD --raw --abbrev=7

#: branches and merges
repo; git checkout -qb feature; echo feat > feat.txt; git add .; git commit -qm feat; git checkout -q main; echo more >> a.txt; git commit -qam main2; git merge --no-edit feature; git log --oneline --graph --all; git branch -a; git branch -d feature; git log --merges --format=%s; git show --format=%p -s HEAD | wc -w; ls; git switch -c x; git branch --show-current; git branch -m y; git branch -v; git checkout nosuch; echo $?; git branch -D main; git switch main; git branch -D main; echo $?; git merge-base main y; git tag v1; git tag -a v2 -m 'two'; git tag -l; git describe; git describe --tags HEAD~1; git show v2 -s --format=%s; git for-each-ref --format='%(refname) %(objecttype)'

#: conflicts
#| needs: sed
#| ignore: files stderr
repo; git checkout -qb b; sed -i s/two/TWO/ a.txt; git commit -qam b; git checkout -q main; sed -i s/two/zwei/ a.txt; git commit -qam m; git merge b; echo $?; git status; cat a.txt; git diff; printf 'one\nboth\nthree\n' > a.txt; git add a.txt; git commit -qm merged; git log --oneline | wc -l; git reset -q --hard HEAD~1; git merge b > /dev/null; git merge --abort; git status -s; git merge -X ours b -m ours; cat a.txt; git checkout -q b; git rebase main; git log --oneline; git cherry-pick main~1; echo $?; git cherry-pick --abort; git revert --no-edit HEAD; git log -1 --format=%s%n%b

#: rebase, reset, stash, restore
#| needs: sed
#| ignore: files stderr
repo; for i in 1 2 3; do echo $i > f$i; git add .; git commit -qm "c$i"; done; git rebase -q --onto HEAD~2 HEAD~1; git log --format=%s; git reset --soft HEAD~1; git status -s; git commit -qm again; echo dirty >> a.txt; git stash; git status -s; git stash list; git stash show -p | tail -2; git stash pop; git diff --stat; git restore a.txt; git status -s; git reset --hard HEAD~1; echo n > new; git stash -u; ls; git stash pop -q; git clean -n; git clean -fd; git rm -q src/m.py; git status -s; git reset -q; git checkout -- .; git mv a.txt b.txt; git status -s; git commit -qm mv; git log --follow --oneline b.txt; git reflog | head -3; git commit --amend -qm amended; git log -1 --format=%s; git reset --hard nosuch; echo $?; GIT_SEQUENCE_EDITOR='sed -i s/^pick/squash/;1s/squash/pick/' git rebase -i HEAD~1 --root 2>&1 | tail -1 | cut -c1-20

#: looking into history
#| needs: sed grep
repo; for i in 1 2 3 4; do echo "line $i" >> log.txt; [ $i = 3 ] && sed -i s/one/eins/ a.txt; git add .; GIT_AUTHOR_DATE="2024-02-0${i}T00:00:00Z" GIT_AUTHOR_NAME=Dev$i git commit -qm "step $i"; done; git log --oneline -2; git log --format='%h %an %ad %s' --date=short; git log --author=Dev3 --format=%s; git log --grep='step [12]' --format=%s; git log -S eins --format=%s; git log -p -1 -- a.txt | tail -8; git log --since=2024-02-02 --until=2024-02-03 --format=%s; git blame log.txt; git blame -L1,1 --porcelain a.txt | head -4; git shortlog -sn HEAD; git grep -n line; git grep -c 'line' HEAD~2; git grep -l nosuch; echo $?; git log --stat --format=%s -1; git log --reverse --format=%s; git log --format='%H' | head -1; git rev-list --count HEAD; git log --all --decorate --oneline; git show HEAD~2 --name-only --format=; git log HEAD~2..HEAD --format=%s; git diff-tree --no-commit-id -r --name-only HEAD; git ls-tree -r HEAD; git log --pretty=fuller -1; git whatchanged -1 --format=%s 2>&1 | tail -1; git log -1 --date=iso --format=%ad; git log --date=relative -1 --format=%ad | wc -w; git bisect start -q HEAD HEAD~4 > /dev/null; git bisect run sh -c '! grep -q "line 3" log.txt' | grep 'first bad' | wc -l; git bisect reset -q; git shortlog HEAD~2..; git cat-file --batch-check <<< HEAD; git rev-parse --short HEAD~1; git log -L1,1:a.txt --format=%s | head -3

#: patches, ignore rules, attributes, configuration
#| needs: grep
#| ignore: files stderr
repo; printf '*.log\nbuild/\n!keep.log\n' > .gitignore; mkdir build; touch x.log keep.log build/o; git status -s; git check-ignore -v x.log; git add -A; git commit -qm ig; echo z >> a.txt; git diff > ../p.diff; git checkout -q a.txt; git apply --check ../p.diff; git apply --stat ../p.diff; git apply ../p.diff; git diff --stat; git apply ../p.diff; echo $?; git commit -qam z; git format-patch -1 -o .. --stdout | grep -v '^--$' | head -12; git format-patch -q -1 -o ..; git reset -q --hard HEAD~1; git am -q ../0001-z.patch; git log -1 --format=%s; git config user.name; git config --global user.name Glo; git config --global --get user.name; git config core.editor true; git config nosuch.key; echo $?; git config --unset core.editor; git config alias.st 'status -s'; git st; git config -f x.cfg a.b c; cat x.cfg; echo 'bad patch' | git apply; echo $?; printf 'a.txt text eol=crlf\n' > .gitattributes; git check-attr -a a.txt; git archive HEAD | tar t 2>/dev/null | head -2; git archive --format=tar HEAD src | wc -c; git bundle create ../b.bundle HEAD -q; git bundle list-heads ../b.bundle | wc -l; git hash-object a.txt; echo data | git hash-object -w --stdin; git var GIT_AUTHOR_IDENT; git notes add -m note; git notes show; git update-index --assume-unchanged a.txt; git ls-files -v | head -1; git ls-files -o --exclude-standard

#: clone, fetch, push and pull between directories
#| needs: sed
#| ignore: files stderr
repo; cd ..; git clone -q r c; cd c; git remote -v | sed "s#$HOME#H#"; git log --oneline; echo c >> a.txt; git commit -qam fromclone; git push -q origin HEAD:feature; cd ../r; git branch -a; git merge -q feature; git log --format=%s; cd ../c; git pull -q; git fetch --all -q; git status -sb; git branch -vv | sed 's/\[.*\]//'; cd ..; git clone -q --bare r bare.git; git -C bare.git log --oneline | wc -l; git clone -q bare.git d; cd d; git remote show -n origin | head -1; echo d > d; git add d; git commit -qm d; git push -q; cd ..; git -C bare.git log -1 --format=%s; git clone nowhere x; echo $?; git clone -q --depth 1 file://$PWD/bare.git sh; git -C sh rev-list --count HEAD; git -C d fetch nosuch; echo $?; git ls-remote bare.git | wc -l; git -C c worktree add -q ../wt HEAD~1; ls wt; git -C c worktree list | wc -l; git -C r submodule status; git fsck 2>&1 | head -1; git -C c gc -q; git -C c fsck; git -C c verify-pack -v .git/objects/pack/*.idx | tail -1

#: complaints
git; echo $?; git nosuch; echo $?; git status; echo $?; repo; git commit -m none; echo $?; git add nowhere; echo $?; git checkout nowhere; echo $?; git log nosuch; echo $?; git show nosuch; echo $?; git diff nosuch; echo $?; git merge nosuch; echo $?; git rm nowhere; echo $?; git branch 'bad name'; echo $?; git push; echo $?; git pull; echo $?; git stash pop; echo $?; git commit --amend --no-edit --date=bad; echo $?; git log --nosuch; echo $?; git rebase nosuch; echo $?; git reset --hard HEAD~9; echo $?; git cat-file -p 0000; echo $?; git mv nowhere x; echo $?; git tag 'a b'; echo $?; git blame nowhere; echo $?; git grep -E '('; echo $?; git config; echo $?; git -C nodir status; echo $?; echo broken > .git/HEAD; git status; echo $?

#: many files
#| needs: grep
git init -q -b main big; cd big; for i in {1..300}; do mkdir -p d$((i%10)); seq $i $((i+20)) > d$((i%10))/f$i; done; git add .; git commit -qm all; git ls-files | wc -l; git rev-parse HEAD; for i in {1..300..7}; do echo changed >> d$((i%10))/f$i; done; git status -s | wc -l; git diff --shortstat; git commit -qam two; git rev-parse HEAD; git diff HEAD~1 --stat | tail -1; git gc -q; git count-objects -v | grep -E '^(in-pack|packs)'; git fsck; git checkout -q HEAD~1; git log --oneline --all | wc -l; git grep -c 'changed' main -- d1 | wc -l; git log --format=%s -- d1/f1; rm -rf d2; git status -s | wc -l; git checkout -q .; git rev-parse HEAD:d2
