import sys

from barnabas.command import main

sys.exit(main())
